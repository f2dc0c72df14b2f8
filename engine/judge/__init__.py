"""The judge as a run uses it: verdicts, exams, estimates and measurements, with their events and their device time."""
