import { ConfigurationError } from '@tallystick/core'
import {
  createMissingPackageError,
  declarePackage,
  explainNativeFailure,
  requireNativeInterface,
} from '@tallystick/core/internal'
import { describe, expect, it, vi } from 'vitest'

const home = { name: '@tallystick/core', resolve: (name: string) => import.meta.resolve(name) }
const coded = (code: unknown) => Object.assign(new Error('no'), { code })
const demandThrown = (code: string) => () => {
  throw coded(code)
}

describe('an optional package', () => {
  it.each<[string, unknown, string]>([
    ['an import cannot find it', coded('ERR_MODULE_NOT_FOUND'), 'is not installed'],
    ['a require cannot find it', coded('MODULE_NOT_FOUND'), 'is not installed'],
    ['it throws by another code', coded('ERR_DLOPEN_FAILED'), 'could not be loaded'],
    ['it throws without a code', new Error('no'), 'could not be loaded'],
    ['it throws what is not an error', { code: 'MODULE_NOT_FOUND' }, 'could not be loaded'],
  ])('that does not load is named, with the line that installs it: %s', async (_, cause, what) => {
    const message = `maker() needs the package lost, which ${what}. Add it: npm install lost.`
    const lost = declarePackage(home, 'lost', () => Promise.reject(cause)).load('maker()')
    const error: unknown = await lost.catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(ConfigurationError)
    expect(error).toMatchObject({ message, cause })
    expect(createMissingPackageError('maker()', 'lost', cause)).toMatchObject({ message, cause })
  })

  it('is loaded once, and again only after it did not load', async () => {
    const load = vi
      .fn<() => Promise<string>>()
      .mockResolvedValue('module')
      .mockRejectedValueOnce(coded('MODULE_NOT_FOUND'))
    const kept = declarePackage(home, 'late', load)
    await expect(kept.load('maker()')).rejects.toThrow('npm install late')
    expect(await Promise.all([kept.load('maker()'), kept.load('maker()')])).toEqual(['module', 'module'])
    expect(await kept.load('maker()')).toBe('module')
    expect(load).toHaveBeenCalledTimes(2)
  })

  it('is looked for before it is needed, where the host resolves names', () => {
    const load = () => Promise.reject(new Error('never called'))
    expect(() => declarePackage(home, 'no-such-package', load).require('maker()')).toThrow(
      'maker() needs the package no-such-package, which is not installed. Add it: npm install no-such-package.',
    )
    expect(() => declarePackage(home, 'vitest', load).require('maker()')).not.toThrow()
    const inBundle = { name: 'bundled', resolve: demandThrown('ERR_MODULE_NOT_FOUND') }
    const elsewhere = { name: 'a', resolve: (name: string) => name === 'lost' && demandThrown('OTHER')() }
    for (const user of [inBundle, elsewhere])
      expect(() => declarePackage(user, 'lost', load).require('maker()')).not.toThrow()
  })
})

describe('the native part of better-sqlite3', () => {
  it.each([[{ node: '22.14.0', napi: '10' }], [{ node: '26.0.0', napi: '11' }], [{ node: '22.13.0' }]])(
    'is let load by a Node of versions %j',
    (versions) => {
      expect(() => requireNativeInterface('sqliteLedger', { versions })).not.toThrow()
    },
  )

  it('does not crash a Node that is too old: that is refused, by its name', () => {
    const old = (versions: object) => () => requireNativeInterface('sqliteLedger', { versions })
    expect(old({ node: '22.13.0', napi: '9' })).toThrow(ConfigurationError)
    expect(old({ node: '22.13.0', napi: '9' })).toThrow(
      'sqliteLedger needs Node 22.14 or newer, and this is Node 22.13.0: its Node-API 9 is older than the 10 ',
    )
    expect(old({ napi: '9' })).toThrow('and this is Node an unknown version')
  })

  it.each([
    ['MODULE_NOT_FOUND', 'is missing'],
    ['ERR_DLOPEN_FAILED', 'could not be loaded'],
  ])('that ends in %s %s here, and there is a way to build it', (code, what) => {
    const { message } = explainNativeFailure('The tool a', coded(code), process) ?? {}
    expect(message).toContain(`The tool a needs the native part of better-sqlite3, which ${what} here (`)
    expect(message).toMatch(/build it: npm explore better-sqlite3 -- npm run build-release\.$/)
    expect(explainNativeFailure('The tool a', new Error('SQLITE_BUSY'), process)).toBeUndefined()
  })
})
