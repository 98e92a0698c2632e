import { accessSync, constants, realpathSync, statSync } from 'node:fs'
import { delimiter, isAbsolute, join, sep } from 'node:path'
import { ConfigurationError } from '@tallystick/core'
import type { AllowedArguments, ShellProgram } from './shell-options.ts'

/** A program with the path that it is started by. */
export interface FoundProgram {
  readonly name: string
  readonly path: string
  readonly args?: AllowedArguments | undefined
  readonly reads: boolean
  readonly about?: string | undefined
}

/**
 * Finds a program once, so that nothing that changes later is run in its place by its name. Folders of `PATH` that are
 * relative, or within the root, are passed over: tools that write there must not be able to make a program. Throws
 * `ConfigurationError` for a program that is not found.
 */
export function foundProgram(
  tool: string,
  [name, { path, args, read = false, about }]: readonly [string, ShellProgram],
  { root, searched = process.env['PATH'] ?? '' }: { readonly root: string; readonly searched?: string },
): FoundProgram {
  const fault = (why: string): ConfigurationError =>
    new ConfigurationError(`The tool ${tool}: the program ${name} ${why}.`)
  if (!/^[A-Za-z0-9_.+-]{1,64}$/.test(name)) {
    throw new ConfigurationError(
      `The tool ${tool}: ${JSON.stringify(name.slice(0, 80))} is no name of a program. Use letters, digits, _ . + and -, and give path for where it is.`,
    )
  }
  const found = { name, args, reads: read, about }
  if (path !== undefined) {
    if (!isAbsolute(path))
      throw fault(`has the path ${JSON.stringify(path)}, which is relative. Give an absolute path`)
    if (!isProgram(path))
      throw fault(`cannot be run: ${JSON.stringify(path)} is no file that may be executed`)
    return { ...found, path }
  }
  for (const folder of searched.split(delimiter)) {
    const place = join(folder, name)
    if (isAbsolute(folder) && isProgram(place) && !isWithin(root, folder)) return { ...found, path: place }
  }
  throw fault('is in no folder of PATH outside the root. Install it, or give its path')
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return statSync(path).isFile()
  } catch {
    return false
  }
}

function isWithin(root: string, folder: string): boolean {
  const real = realpathSync(folder)
  return real === root || real.startsWith(root.endsWith(sep) ? root : root + sep)
}
