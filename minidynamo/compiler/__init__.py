"""From a frame to installed code: pipeline, backends, limits, caches, reports."""
