import { ConfigurationError } from '@tallystick/core'
import { mkdtempSync, rmSync } from 'node:fs'
import { registerHooks } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { httpFetch } from '@tallystick/tools/http-fetch'
import { sqliteMemory } from '@tallystick/tools/memory'
import { sqlQuery } from '@tallystick/tools/sql-query'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { declarePackage, requirePackage } from '../../src/packages.ts'
import { ToolError } from '../../src/define/outcome.ts'

const coded = (code: unknown) => Object.assign(new Error('no'), { code })
const notInstalled =
  'The tool maker needs the package no-such-package, which is not installed. Add it: npm install no-such-package.'

describe('an optional package of a tool', () => {
  it.each<[string, unknown, string]>([
    ['an import cannot find it', coded('ERR_MODULE_NOT_FOUND'), 'is not installed'],
    ['a require cannot find it', coded('MODULE_NOT_FOUND'), 'is not installed'],
    ['it throws by another code', coded('ERR_DLOPEN_FAILED'), 'could not be loaded'],
    ['it throws without a code', new Error('no'), 'could not be loaded'],
    ['it throws what is not an error', { code: 'MODULE_NOT_FOUND' }, 'could not be loaded'],
  ])('that does not load is named, with the line that installs it: %s', async (_, cause, what) => {
    const lost = declarePackage('lost', () => Promise.reject(cause))
    const thrown = (loading: Promise<unknown>): Promise<unknown> => loading.catch((error: unknown) => error)
    const [made, called] = [await thrown(lost.load('maker()')), await thrown(lost.loadInCall('maker'))]
    expect(made).toBeInstanceOf(ConfigurationError)
    expect(called).toBeInstanceOf(ToolError)
    const message = `needs the package lost, which ${what}. Add it: npm install lost.`
    expect(made).toMatchObject({ message: `maker() ${message}`, cause })
    expect(called).toMatchObject({ message: `The tool maker ${message}`, cause })
  })

  it('is loaded once, and again only after it did not load', async () => {
    const load = vi
      .fn<() => Promise<string>>()
      .mockResolvedValue('module')
      .mockRejectedValueOnce(coded('MODULE_NOT_FOUND'))
    const kept = declarePackage('late', load)
    await expect(kept.load('maker')).rejects.toThrow('npm install late')
    expect(await Promise.all([kept.load('maker'), kept.load('maker')])).toEqual(['module', 'module'])
    expect(load).toHaveBeenCalledTimes(2)
  })

  it('is looked for before it is needed', () => {
    const load = () => Promise.reject(new Error('never called'))
    for (const look of [
      (name: string) => declarePackage(name, load).require('The tool maker'),
      (name: string) => requirePackage('The tool maker', name),
    ]) {
      expect(() => look('no-such-package')).toThrow(ConfigurationError)
      expect(() => look('no-such-package')).toThrow(notInstalled)
      expect(() => look('vitest')).not.toThrow()
    }
  })

  it.each<[string, string, (folder: string) => unknown]>([
    ['The tool http_fetch', 'undici', () => httpFetch()],
    ['The tool sql_query', 'better-sqlite3', () => sqlQuery({ path: 'shop.db' })],
    ['The tool sql_query', 'pg', () => sqlQuery({ connectionString: 'postgres://shop.example/a' })],
    ['sqliteMemory()', 'better-sqlite3', (folder) => sqliteMemory(join(folder, 'memory.db')).close()],
  ])('is named when %s is made, where it is not installed', (user, missing, makeIn) => {
    const folder = mkdtempSync(join(tmpdir(), 'tallystick-optional-'))
    onTestFinished(() => rmSync(folder, { recursive: true }))
    const make = () => makeIn(folder)
    const hooks = registerHooks({
      resolve(name, context, next) {
        if (name === missing) throw coded('ERR_MODULE_NOT_FOUND')
        return next(name, context)
      },
    })
    onTestFinished(() => hooks.deregister())
    expect(make).toThrow(
      `${user} needs the package ${missing}, which is not installed. Add it: npm install ${missing}.`,
    )
    hooks.deregister()
    expect(make).not.toThrow()
  })
})
