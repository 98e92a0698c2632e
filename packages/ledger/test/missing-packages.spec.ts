// What a user reads whose machine lacks a package, or the native part of one. In processes of their own, where hooks of Node
// make it so.
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import { temporaryFile } from './support/temporary-folder.ts'

const run = promisify(execFile)
const source = (path: string): string => JSON.stringify(new URL(`../src/${path}`, import.meta.url).href)
const core = JSON.stringify(import.meta.resolve('@tallystick/core'))

/** A hook that answers to names that fit as Node does to those that it cannot find or load. */
const missing = (names: string, code: string): string => `
  import { registerHooks } from 'node:module'
  registerHooks({
    resolve(name, context, next) {
      if (!${names}.test(name)) return next(name, context)
      throw Object.assign(new Error("Cannot find module '" + name + "'\\nRequire stack:\\n- /of/ada/lib"), { code: '${code}' })
    },
  })`

/** What a call ends in. */
async function ending(hook: string, entry: string, call: string): Promise<unknown> {
  const program = `${hook}
    const { ConfigurationError } = await import(${core})
    const entry = await import(${source(entry)})
    try {
      await entry.${call}
      console.log('"no error"')
    } catch (error) {
      console.log(JSON.stringify({ known: error instanceof ConfigurationError, message: error.message }))
    }`
  const words = ['--no-warnings', '--input-type=module', '-e', program]
  const { stdout } = await run(process.execPath, words)
  return JSON.parse(stdout)
}

describe('a ledger in Postgres without the package pg', () => {
  const hook = missing('/^pg$/', 'ERR_MODULE_NOT_FOUND')
  const message = 'postgresLedger() needs the package pg, which is not installed. Add it: npm install pg.'

  it('says what to install when it is made', async () => {
    const call = `postgresLedger({ connectionString: 'postgres://db.example/app' })`
    expect(await ending(hook, 'postgres/index.ts', call)).toEqual({ known: true, message })
  })

  it('says it at its first use in a bundle, which may hold the package', async () => {
    const bundled = `${hook}
      registerHooks({
        resolve(name, context, next) {
          if (name === '@tallystick/ledger/package.json') throw new Error('Nothing has this name.')
          return next(name, context)
        },
      })`
    const make = `postgresLedger({ connectionString: 'postgres://db.example/app' })`
    expect(await ending(bundled, 'postgres/index.ts', make)).toBe('no error')
    const call = `${make}.head('019b76da-a800-7000-8000-000000000000')`
    expect(await ending(bundled, 'postgres/index.ts', call)).toEqual({ known: true, message })
  })
})

describe('a SQLite file without the native part of better-sqlite3', () => {
  it.each([
    ['MODULE_NOT_FOUND', 'is missing'],
    ['ERR_DLOPEN_FAILED', 'could not be loaded'],
  ])('says what to do where Node ends in %s, and quotes no path', async (code, what) => {
    const path = JSON.stringify(temporaryFile())
    for (const call of [`sqliteLedger(${path})`, `sqliteKeyring(${path})`]) {
      const found = await ending(missing('/\\.node$/', code), 'sqlite/index.ts', call)
      const message: unknown = expect.stringMatching(
        `the native part of better-sqlite3, which ${what} here .* build-release`,
      )
      expect({ call, found }).toEqual({ call, found: { known: true, message } })
      expect(JSON.stringify(found)).not.toContain('/of/ada')
    }
  })
})
