// Loaded before a recipe, this makes its first claim a wrong one: what it says is so must not be so.
import assert from 'node:assert/strict'

const { equal, notEqual, deepEqual, notDeepEqual } = assert
Object.assign(assert, { equal: notEqual, notEqual: equal, deepEqual: notDeepEqual, notDeepEqual: deepEqual })
