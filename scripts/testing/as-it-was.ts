// Test files share a process. `vitest.config.ts` runs this before each of them: when the file has ended, its spies, stubs
// and fake timers are undone, and what vitest does not undo has to be as it was.
import { deepEqual } from 'node:assert/strict'
import * as childProcess from 'node:child_process'
import * as crypto from 'node:crypto'
import * as fs from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { afterAll, vi } from 'vitest'

/** The number of listeners of `process`, by event. */
function listeners(): Readonly<Record<string, number>> {
  return Object.fromEntries(
    process.eventNames().flatMap((name) => {
      const count = process.listenerCount(name)
      return count > 0 ? [[String(name), count] as const] : []
    }),
  )
}

const environment = { ...process.env }
const { setTimeout, setImmediate, setInterval, clearTimeout, Date } = globalThis
const time = { setTimeout, setImmediate, setInterval, clearTimeout, Date }
// What a library replaced in a file before this one, such as Playwright `fs.close`, shows only once the names are in step.
syncBuiltinESMExports()
/** Functions of Node that tests replace, as modules import them by name. */
const ofNode = { ...childProcess, ...crypto, ...fs }
const before = {
  folder: process.cwd(),
  exitCode: process.exitCode,
  changed: [],
  faked: [],
  replaced: [],
  listeners: listeners(),
}

/** The clocks and timers that a file has replaced and not restored. */
function faked(): readonly string[] {
  return Object.entries(time).flatMap(([name, real]) =>
    Reflect.get(globalThis, name) === real ? [] : [name],
  )
}

/** The functions of Node that are others than before the file. */
function replaced(): readonly string[] {
  const now: Readonly<Record<string, unknown>> = { ...childProcess, ...crypto, ...fs }
  return Object.entries(ofNode).flatMap(([name, real]) => (now[name] === real ? [] : [name]))
}

/** The names of variables that have another value than before the file. Their values may be keys. */
function changedVariables(): readonly string[] {
  const names = new Set([...Object.keys(environment), ...Object.keys(process.env)])
  return [...names].filter((name) => process.env[name] !== environment[name])
}

// Hooks that end a file run in the reverse of their order: this one runs after those of the file.
afterAll(() => {
  // A spy on a fake timer puts that back: real timers come after it.
  vi.restoreAllMocks()
  vi.useRealTimers()
  vi.unstubAllEnvs()
  vi.unstubAllGlobals()
  const after = {
    folder: process.cwd(),
    exitCode: process.exitCode,
    changed: changedVariables(),
    faked: faked(),
    replaced: replaced(),
  }
  deepEqual({ ...after, listeners: listeners() }, before)
})
