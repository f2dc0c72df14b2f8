"""Facts of one evaluation or attempt: verdict, times, resources, counted bytes, stages."""
