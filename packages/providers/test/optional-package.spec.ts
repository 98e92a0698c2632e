import { ConfigurationError, ProviderError } from '@tallystick/core'
import { describe, expect, it, vi } from 'vitest'
import { createMissingPackageError, declarePackage } from '../src/shared/options.ts'

const coded = (code: unknown) => Object.assign(new Error('no'), { code })

describe('an optional package', () => {
  it.each<[string, unknown, string]>([
    ['an import cannot find it', coded('ERR_MODULE_NOT_FOUND'), 'is not installed'],
    ['a require cannot find it', coded('MODULE_NOT_FOUND'), 'is not installed'],
    ['it throws by another code', coded('ERR_DLOPEN_FAILED'), 'could not be loaded'],
    ['it throws without a code', new Error('no'), 'could not be loaded'],
    ['it throws what is not an error', { code: 'MODULE_NOT_FOUND' }, 'could not be loaded'],
  ])('that does not load is named, with the line that installs it: %s', async (_, cause, what) => {
    const message = `maker() needs the package lost, which ${what}. Add it: npm install lost.`
    const error: unknown = await declarePackage('lost', () => Promise.reject(cause))
      .load('maker')
      .catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(ProviderError)
    expect(error).toMatchObject({ class: 'invalid_request', retryable: false, message })
    const { cause: known } = error as ProviderError
    expect(known).toBeInstanceOf(ConfigurationError)
    expect(known).toMatchObject({ message, cause })
    expect(createMissingPackageError('maker', 'lost', cause)).toMatchObject({ message, cause })
  })

  it('is loaded once, and again only after it did not load', async () => {
    const load = vi
      .fn<() => Promise<string>>()
      .mockResolvedValue('module')
      .mockRejectedValueOnce(coded('MODULE_NOT_FOUND'))
    const kept = declarePackage('late', load)
    await expect(kept.load('maker')).rejects.toThrow('npm install late')
    expect(await Promise.all([kept.load('maker'), kept.load('maker')])).toEqual(['module', 'module'])
    expect(await kept.load('maker')).toBe('module')
    expect(load).toHaveBeenCalledTimes(2)
  })

  it('is looked for before it is needed', () => {
    const load = () => Promise.reject(new Error('never called'))
    expect(() => declarePackage('no-such-package', load).require('maker')).toThrow(
      'maker() needs the package no-such-package, which is not installed. Add it: npm install no-such-package.',
    )
    expect(() => declarePackage('vitest', load).require('maker')).not.toThrow()
  })
})
