"""Key tables: noise as integers on the keys 0..K-1, what the integers guarantee, and looking noise up."""
