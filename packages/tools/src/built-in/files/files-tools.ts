import { createFilesTools } from './tool-list.ts'
import type { Tool } from '@tallystick/core'
import { option, type Schema, requireOptions } from '@tallystick/core/internal'
import type { JsonObject } from '@tallystick/core/vocabulary'
import { approvalPolicy, type ApprovalPolicy } from '../../define/approval.ts'
import { createNameRules } from './names.ts'
import { openRoot } from './root.ts'
import type { FolderRules } from './text.ts'

/** The folder that a model may use, and how much of it one call may show. */
export interface FilesOptions {
  /** The folder. Links to it are resolved once, when the tools are made. */
  readonly root: string
  /** Adds tools that write, edit and move. Default `false`. */
  readonly write?: boolean | undefined
  /** A prefix of each tool name, such as `docs_`, so that an agent can have tools over several folders. */
  readonly prefix?: string | undefined
  /** A sentence about the folder, which begins each description. */
  readonly about?: string | undefined
  /** Shows and uses names that begin with a dot. Default `false`. */
  readonly hidden?: boolean | undefined
  /**
   * Globs of names that are neither shown nor used, as in a `.gitignore`: `dist/`, `*.log`, `/config/local.json`. Upper and lower
   * case are the same. Default `['node_modules/']`.
   */
  readonly ignore?: readonly string[] | undefined
  /** Bytes of text shown in one result. Default 50 000. */
  readonly maxBytes?: number | undefined
  /** Bytes of a file that is read, searched or written; larger ones are refused. Default 10 000 000. */
  readonly maxFileBytes?: number | undefined
  /** Files, folders or matching lines shown in one result. Default 500. */
  readonly maxEntries?: number | undefined
  /** Files and folders that one call looks at. Default 100 000. */
  readonly maxVisited?: number | undefined
  /** After this many milliseconds a call is given up as `timed_out`. Default 30 000. */
  readonly timeoutMs?: number | undefined
  /** When a person has to approve a call that writes, edits or moves. Default: never. */
  readonly approval?: ApprovalPolicy<JsonObject> | undefined
}

const { fields, filledText, listOf, maybe, milliseconds, numberFrom, trueOrFalse, valueThat } = option

const filesOptions: Schema = fields<FilesOptions>(
  {
    root: filledText,
    write: maybe(trueOrFalse),
    prefix: maybe(
      valueThat(
        'up to 100 of A-Z a-z 0-9 _ . and -',
        (value) => typeof value === 'string' && /^[A-Za-z0-9_.-]{0,100}$/.test(value),
      ),
    ),
    about: maybe(filledText),
    hidden: maybe(trueOrFalse),
    ignore: maybe(listOf(filledText)),
    maxBytes: maybe(numberFrom(1, { whole: true })),
    maxFileBytes: maybe(numberFrom(1, { whole: true })),
    maxEntries: maybe(numberFrom(1, { whole: true })),
    maxVisited: maybe(numberFrom(1, { whole: true })),
    timeoutMs: maybe(milliseconds),
    approval: maybe(approvalPolicy),
  },
  {
    ...{ path: 'root', folder: 'root', directory: 'root', cwd: 'root', allowedDirectories: 'root' },
    ...{
      writable: 'write',
      readOnly: 'write',
      exclude: 'ignore',
      timeout: 'timeoutMs',
      description: 'about',
    },
  },
)

/**
 * Tools over a folder: `list_files`, `find_files`, `search_files` and `read_file`; with `write: true` also `write_file`,
 * `edit_file` and `move_file`. Throws `ConfigurationError` if there is no such folder.
 *
 * Paths are relative to the folder. Links inside it are followed where they lead to another place inside it; nothing
 * outside is read, written, or said to exist. On Linux that holds while other processes change folders and links, since
 * every name is looked up in a folder that is held open. Elsewhere the content of a file is only used once the open file
 * was found to be inside; do not rely on it to hold off a process that swaps folders and links at the same time.
 */
export function filesTools(options: FilesOptions): readonly Tool[] {
  requireOptions('filesTools', filesOptions, options)
  const { root, write = false, hidden = false, ignore = ['node_modules/'] } = options
  const rules: FolderRules = {
    root: openRoot('filesTools', root, createNameRules('filesTools', ignore, hidden)),
    maxBytes: options.maxBytes ?? 50_000,
    maxFileBytes: options.maxFileBytes ?? 10_000_000,
    maxEntries: options.maxEntries ?? 500,
    maxVisited: options.maxVisited ?? 100_000,
  }
  return createFilesTools(rules, write, options)
}
