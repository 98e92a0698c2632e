// Loaded before a recipe, this inverts its first claim, so that a recipe that asserts nothing is found.
import assert from 'node:assert/strict'

const { equal, notEqual, deepEqual, notDeepEqual } = assert
Object.assign(assert, { equal: notEqual, notEqual: equal, deepEqual: notDeepEqual, notDeepEqual: deepEqual })
