import { expect, it } from 'vitest'
import { ConfigurationError } from '@tallystick/core'
import { requireNativeInterface } from '../src/sqlite/open-database.ts'

it('a Node that cannot load SQLite is named, with the one that can, before it would crash', () => {
  const old = (): void => requireNativeInterface('sqliteLedger', { node: '22.13.0', napi: '9' })
  expect(old).toThrow(ConfigurationError)
  expect(old).toThrow('sqliteLedger needs Node 22.14 or newer, and this is Node 22.13.0')
})

it('a Node that can is let through, and so is a host that names no version', () => {
  expect(() => requireNativeInterface('sqliteLedger', { node: '22.14.0', napi: '10' })).not.toThrow()
  expect(() => requireNativeInterface('sqliteLedger', { node: '22.14.0' })).not.toThrow()
  expect(() => requireNativeInterface('sqliteLedger')).not.toThrow()
})
