import { closeSync, createReadStream, openSync, readdirSync, readSync, statSync } from 'node:fs'
import { basename, join } from 'node:path'
import { type Ledger, memoryLedger, TallystickError } from '@tallystick/core'
import { importEvents, splitLines } from '@tallystick/ledger'
import { type CommandContext, isAddress, isPostgres, parsePostgresPlace } from '../command/context.ts'
import { CommandError } from '../command/exit-code.ts'
import { countBytes, formatBytes, withProgress } from '../command/progress.ts'
import { type LedgerAccess, withLedger } from '../runs/open-ledger.ts'

/** A ledger to inspect. */
export interface Source {
  readonly ledger: Ledger
  /** A file name, or a database and its schema. */
  readonly title: string
  /** True if it was read from exports, and what happens in it is kept nowhere. */
  readonly isCopy: boolean
}

/**
 * Opens what is to be inspected, and closes it after `use`: a ledger, or exports, which are read into memory. Rejects with an
 * error that says why it cannot be read, before `use` is called.
 */
export async function withSource<Result>(
  context: CommandContext,
  place: string,
  access: LedgerAccess,
  use: (source: Source) => Promise<Result>,
): Promise<Result> {
  const files = listExports(place)
  if (files.length > 0) {
    const ledger = memoryLedger()
    await importAll(context, ledger, files)
    return await use({ ledger, title: basename(place), isCopy: true })
  }
  return await withLedger(place, access, async (ledger) => {
    // A store is opened at its first use: what is wrong with it is said now, not to a browser.
    for await (const _ of ledger.runs({ limit: 1 })) break
    return await use({ ledger, title: nameLedger(place), isCopy: false })
  })
}

function nameLedger(place: string): string {
  if (!isPostgres(place)) return basename(place)
  const { connectionString, schema } = parsePostgresPlace(place)
  const database = URL.parse(connectionString)?.pathname.slice(1) ?? ''
  return [
    database === '' ? 'postgres' : decodeURIComponent(database),
    ...(schema === undefined ? [] : [schema]),
  ].join('.')
}

/** The most that exports may hold together, in bytes: in memory they take several times as much. */
const maxBytes = 500_000_000

interface ExportFile {
  readonly path: string
  readonly bytes: number
}

/** The exports that a place is, or a folder of them holds; none if it is a ledger. Throws a `CommandError` for a folder without any. */
function listExports(place: string): readonly ExportFile[] {
  const stats = isAddress(place) ? undefined : statSync(place, { throwIfNoEntry: false })
  if (stats === undefined) return []
  if (!stats.isDirectory())
    return stats.isFile() && isExport(place) ? [{ path: place, bytes: stats.size }] : []
  const files = readdirSync(place)
    .filter((name) => /\.(jsonl|ndjson)$/.test(name))
    .sort()
    .map((name) => join(place, name))
    .flatMap((path) => {
      const found = statSync(path)
      return found.isFile() ? [{ path, bytes: found.size }] : []
    })
  if (files.length > 0) return files
  throw new CommandError(
    'not_found',
    `The folder ${place} holds no export: no file in it ends with .jsonl. Name the file of a ledger, or write an export: tallystick export runs.db > runs.jsonl`,
  )
}

/** Returns true for a file of JSON Lines: no other kind of ledger begins with a brace. */
function isExport(path: string): boolean {
  const file = openSync(path, 'r')
  try {
    const beginning = Buffer.alloc(64)
    const text = beginning.toString('utf8', 0, readSync(file, beginning))
    return /^\uFEFF?\s*\{/.test(text)
  } finally {
    closeSync(file)
  }
}

/** Reads exports into a ledger. What is wrong with one of several is said, and the others are read. */
async function importAll(
  context: CommandContext,
  ledger: Ledger,
  files: readonly ExportFile[],
): Promise<void> {
  const all = files.reduce((sum, { bytes }) => sum + bytes, 0)
  if (all > maxBytes) {
    throw new CommandError(
      'refused',
      `The exports hold ${Math.round(all / 1_000_000)} MB, and at most ${maxBytes / 1_000_000} MB are read into memory. Make a ledger of them, and inspect it: tallystick import copy.db FILE`,
    )
  }
  await withProgress(
    context,
    async () => all,
    async ({ add, context: aside }) => {
      for (const { path } of files) {
        let runs = 0
        const onRun = (): void => void runs++
        try {
          const lines = splitLines(countBytes(createReadStream(path), add))
          const { torn } = await importEvents(ledger, lines, { onRun })
          if (torn)
            aside.say(
              `${path}: line ${torn.line}, the last one, is cut off in the middle of an event, so it was left out.`,
            )
        } catch (error) {
          if (!(error instanceof TallystickError) || (files.length === 1 && runs === 0)) throw error
          aside.say(`error: ${path}: ${error.message}`)
        }
      }
    },
    formatBytes,
  )
}
