"""Reads `earshot:cluster` of a stack file, with one clear line per problem."""
