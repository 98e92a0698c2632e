import { realpathSync, statSync } from 'node:fs'
import { ConfigurationError } from '@tallystick/core'
import type { ShownNames } from '../names/shown-names.ts'
import { byHandle, hasHandlePaths } from './by-handle.ts'
import { byName } from './by-name.ts'
import type { FolderAccess } from './folder.ts'

/** The folder that a family of tools is limited to. */
export interface Root {
  /** Its path, links resolved. */
  readonly real: string
  readonly shown: ShownNames
  access(): Promise<FolderAccess>
}

/** Resolves the folder once. Throws `ConfigurationError` where there is no such folder. */
export function rootAt(tool: string, folder: string, shown: ShownNames, access?: 'by name'): Root {
  const real = realFolder(tool, folder)
  let found: Promise<FolderAccess> | undefined
  const find = async (): Promise<FolderAccess> =>
    access === undefined && (await hasHandlePaths(real)) ? byHandle(real) : byName(real)
  return { real, shown, access: () => (found ??= find()) }
}

/** The path of a folder without links. Throws `ConfigurationError` where there is no such folder. */
function realFolder(tool: string, folder: string): string {
  let real: string
  try {
    real = realpathSync.native(folder)
  } catch (error) {
    throw new ConfigurationError(
      `${tool}: root is ${JSON.stringify(folder)}, which cannot be found. Give a folder that exists.`,
      { cause: error },
    )
  }
  if (statSync(real).isDirectory()) return real
  throw new ConfigurationError(
    `${tool}: root is ${JSON.stringify(folder)}, which is no folder. Give a folder.`,
  )
}
