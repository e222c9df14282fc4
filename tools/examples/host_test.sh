#!/bin/bash
# The example of an embedding program computes what calculus says.
exec "$@"
