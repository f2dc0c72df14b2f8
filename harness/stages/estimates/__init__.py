"""Speed without a GPU: traffic counted by samples, and a roofline between two bounds."""
