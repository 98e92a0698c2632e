import { ToolError } from '../../../execution/tool-error.ts'
import { quoted } from '../names/asked-path.ts'
import { NotAFileError, OutsideError } from './folder.ts'

/** The code of an error of the system, such as `ENOENT`. */
export function codeOf(error: unknown): string | undefined {
  const code: unknown = error instanceof Error && 'code' in error ? error.code : undefined
  return typeof code === 'string' ? code : undefined
}

const meanings: Readonly<Record<string, string>> = {
  EACCES: 'cannot be used: the permission is missing',
  EPERM: 'cannot be used: the permission is missing',
  EROFS: 'cannot be changed: its file system is read-only',
  ENOSPC: 'cannot be written: the disk is full',
  EDQUOT: 'cannot be written: the quota of the disk is used up',
  ENAMETOOLONG: 'has a name that is too long',
  EINVAL: 'cannot be used: the system refuses this name or this change',
  EXDEV: 'cannot be moved there: the other folder is on another file system. Write it anew instead',
  EMFILE: 'cannot be opened now: too many files are open. Try again',
  ENFILE: 'cannot be opened now: too many files are open. Try again',
  EIO: 'cannot be read: the disk reports a fault',
  EISDIR: 'is a folder',
  ENOTDIR: 'is no folder',
  ENOENT: 'does not exist any more: it was changed during the call. Look again',
  EEXIST: 'was made by another process during the call. Look again',
  ELOOP: 'was replaced by a link during the call. Look again',
  EBUSY: 'is in use',
  ENOTEMPTY: 'exists already',
}

/**
 * An error of the system in words that a model can act on, without the paths of this machine. Anything else that was
 * thrown is returned as it is.
 */
export function faultAt(error: unknown, path: string): unknown {
  if (error instanceof ToolError) return error
  if (error instanceof OutsideError) {
    return new ToolError(
      `${quoted(path)} leads outside the root folder: a folder on its way was changed during the call.`,
    )
  }
  if (error instanceof NotAFileError) {
    return new ToolError(`${quoted(path)} is no regular file: it was changed during the call. Look again.`)
  }
  const code = codeOf(error)
  if (code === undefined) return error
  return new ToolError(`${quoted(path)} ${meanings[code] ?? `cannot be used (${code})`}.`)
}
