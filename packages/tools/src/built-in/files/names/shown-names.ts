import { ConfigurationError } from '@tallystick/core'
import { type Glob, GlobError, globOf } from './glob.ts'

/** Why a path is not shown. */
export type Unshown = 'hidden' | 'ignored'

/** Which paths of the folder tools show and use. */
export interface ShownNames {
  /** Why the last name of a path is not shown; its folders have been judged before. */
  unshown(parts: readonly string[], isFolder: boolean): Unshown | undefined
}

/** Beginning and end of the names of the files that hold a text before it replaces another one. */
export const temporaryName = { start: '.tallystick-', end: '.tmp' } as const

/**
 * `ignore` holds globs as in a `.gitignore`: one without a slash is of a name at any depth, one with a slash of a path
 * from the root, and one that ends with a slash of folders only. Case does not matter, since it does not on every file
 * system. Throws `ConfigurationError` for a glob that cannot be read.
 */
export function shownNames(tool: string, ignore: readonly string[], hidden: boolean): ShownNames {
  const rules = ignore.map((pattern) => ruleOf(tool, pattern))
  return {
    unshown(parts, isFolder) {
      const name = parts.at(-1) ?? ''
      if (isTemporary(name) || (!hidden && name.startsWith('.'))) return 'hidden'
      const path = parts.join('/')
      const isIgnored = rules.some(
        ({ foldersOnly, ofName, glob }) => (isFolder || !foldersOnly) && glob(ofName ? name : path),
      )
      return isIgnored ? 'ignored' : undefined
    },
  }
}

function isTemporary(name: string): boolean {
  const folded = name.toLowerCase()
  return folded.startsWith(temporaryName.start) && folded.endsWith(temporaryName.end)
}

interface Rule {
  readonly foldersOnly: boolean
  readonly ofName: boolean
  readonly glob: Glob
}

function ruleOf(tool: string, pattern: string): Rule {
  const fault = (why: string): ConfigurationError =>
    new ConfigurationError(`${tool}: the glob ${JSON.stringify(pattern)} in ignore ${why}.`)
  if (pattern.startsWith('!')) throw fault('begins with !. Leave out the glob that ignores too much instead')
  const body = pattern.replace(/\/$/, '')
  const path = body.replace(/^\//, '')
  if (path === '') throw fault('names nothing')
  try {
    const glob = globOf(path, { ignoreCase: true })
    return { foldersOnly: body !== pattern, ofName: !body.includes('/'), glob }
  } catch (error) {
    if (error instanceof GlobError) throw fault(error.message)
    throw error
  }
}
