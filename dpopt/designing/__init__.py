"""From a wanted (epsilon, delta) to a design: targets, designs side by side, inverse questions, the frontier."""
