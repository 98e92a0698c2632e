import { LedgerUnavailableError } from '@tallystick/core'
import type { Statement } from '../connection/connections.ts'
import type { DatabasePlace } from '../connection/database-place.ts'

/** What a schema holds: nothing of ours yet, or a ledger of some version. */
export type Found = { readonly kind: 'nothing' } | { readonly kind: 'ledger'; readonly version: number }

/** Sends a statement: over a connection of its own, or one that is in the middle of a transaction. */
export type Ask = <Row>(statement: Statement) => Promise<readonly Row[]>

const tableNames = [
  'ledger',
  'run',
  'event',
  'payload',
  'inbox',
  'content',
  'content_use',
  'removal',
  'fact',
  'history',
  'history_use',
  'snapshot',
  'projection',
  'run_summary',
  'run_agent',
  'session_summary',
  'spending',
]

/**
 * Reads the tables of the schema without changing them, and refuses a schema that cannot be a ledger. Throws
 * `LedgerUnavailableError`.
 */
export async function inspectSchema(ask: Ask, place: DatabasePlace): Promise<Found> {
  const [{ tables, encoding } = { tables: [], encoding: '' }] = await ask<{
    readonly tables: readonly string[]
    readonly encoding: string
  }>({
    text: `select current_setting('server_encoding') as encoding, array(
      select relname::text from pg_catalog.pg_class join pg_catalog.pg_namespace on pg_namespace.oid = relnamespace
      where nspname = $1 and relname = any ($2::text[])
    ) as tables`,
    values: [place.schema, tableNames],
  })
  if (encoding !== 'UTF8') {
    throw new LedgerUnavailableError(
      `The database of the ledger at ${place.description} has the encoding ${encoding}, which cannot hold every text. ` +
        'Make a database with the encoding UTF8, and name that one.',
    )
  }
  if (tables.length === 0) return { kind: 'nothing' }
  const version = tables.includes('ledger') ? await versionOf(ask, place) : undefined
  if (version !== undefined) return { kind: 'ledger', version }
  throw new LedgerUnavailableError(
    `The schema at ${place.description} has tables of another application (${[...tables].toSorted().join(', ')}), and is ` +
      'no Tallystick ledger. It was left as it is. Name another schema; one that does not exist is created.',
  )
}

/** Returns the version of a ledger; `undefined` if the version table belongs to another application. */
async function versionOf(ask: Ask, { quotedSchema }: DatabasePlace): Promise<number | undefined> {
  const columns = await ask<{ readonly name: string }>({
    text: `select attname::text as name from pg_catalog.pg_attribute
      where attrelid = '${quotedSchema.replaceAll("'", "''")}.ledger'::regclass and attnum > 0 and not attisdropped`,
    values: [],
  })
  const names = columns.map(({ name }) => name)
  if (!names.includes('application') || !names.includes('version')) return undefined
  const [row] = await ask<{ readonly version: string | number }>({
    text: `select version from ${quotedSchema}.ledger where application::text = 'tallystick'`,
    values: [],
  })
  return row && Number(row.version)
}
