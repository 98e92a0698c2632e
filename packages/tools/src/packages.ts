import { ConfigurationError } from '@tallystick/core'
import {
  createMissingPackageError,
  declarePackage as declareOptional,
  type OptionalPackage,
} from '@tallystick/core/internal'
import type * as pg from 'pg'
import type * as undici from 'undici'
import { ToolError } from './define/outcome.ts'

/** `load` imports the package by its literal name, so that bundlers see it. */
export function declarePackage<Module>(name: string, load: () => Promise<Module>): OptionalPackage<Module> {
  return declareOptional({ name: '@tallystick/tools', resolve: resolvePackage }, name, load)
}

/** Loads a package for a call of a tool. Rejects with a `ToolError`, which the model reads. */
export async function loadInCall<Module>(wanted: OptionalPackage<Module>, tool: string): Promise<Module> {
  try {
    return await wanted.load(`The tool ${tool}`)
  } catch (error) {
    throw new ToolError((error as Error).message, { cause: error })
  }
}

/** Refuses what needs a package that no bundle can hold, and that is not installed. Throws `ConfigurationError`. */
export function requirePackage(user: string, name: string): void {
  try {
    resolvePackage(name)
  } catch (error) {
    throw createMissingPackageError(user, name, error)
  }
}

function resolvePackage(name: string): void {
  if (typeof import.meta.resolve === 'function') import.meta.resolve(name)
  // Asked for, not imported: what every tool needs shares a file with this, and browsers have no such module.
  else
    process
      .getBuiltinModule('node:module')
      .createRequire(import.meta.url)
      .resolve(name)
}

/** The driver of Postgres. */
export const pgPackage: OptionalPackage<typeof pg> = declarePackage('pg', () => import('pg'))

/** The client that makes the requests. */
export const undiciPackage: OptionalPackage<typeof undici> = declarePackage('undici', () => import('undici'))

/** Throws `ConfigurationError` for what is not the address of a database. Its message must not repeat it, and with it the password. */
export function requireConnectionString(subject: string, connectionString: string): void {
  if (/^postgres(?:ql)?:\/\//.test(connectionString) && URL.canParse(connectionString)) return
  throw new ConfigurationError(
    `${subject} has no database: its connectionString cannot be read. Give one such as postgres://user@host:5432/database, with special characters of the password percent-encoded.`,
  )
}
