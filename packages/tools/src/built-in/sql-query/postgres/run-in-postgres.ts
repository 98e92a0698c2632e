import type { ClientBase } from 'pg'
import type { Json } from '@tallystick/core/vocabulary'
import { ShownRows } from '../answer/shown-rows.ts'
import type { ParameterValue, StatementBounds, StatementEnding } from '../answer/statement.ts'

/** One statement, and what may become of it. */
export interface PostgresRequest extends StatementBounds {
  readonly sql: string
  readonly parameters: readonly ParameterValue[]
}

/** Roles that a function call of a SELECT lets do more than read the database. */
const dangerous = `rolsuper or rolname in
  ('pg_read_server_files', 'pg_write_server_files', 'pg_execute_server_program', 'pg_signal_backend')`

const roleQuery = `select exists (
  select from pg_roles where pg_has_role(current_user, oid, 'member') and (${dangerous})
) or exists (
  select from pg_roles where pg_has_role(session_user, oid, 'member') and (${dangerous})
) as dangerous`

/** How many rows are fetched at first, and how many times as many each time after. */
const firstFetch = 8
const fetchGrowth = 8

/**
 * Runs one statement in a transaction that only reads, which its end of the connection undoes. A cursor takes nothing but
 * one SELECT, WITH or VALUES that changes nothing: Postgres judges that, by its own grammar. Rejects with what Postgres says.
 * Calls `onStart` when only the statement is left.
 */
export async function runInPostgres(
  client: ClientBase,
  request: PostgresRequest,
  isTrusted: boolean,
  onStart: () => void,
): Promise<StatementEnding> {
  if (!(await begins(client, request, isTrusted))) {
    return {
      kind: 'failed',
      message:
        'The role that this tool connects as may do more than read: it is a superuser, or may read or write files of the server, run programs there, or end the work of others, all of which a SELECT can do. Nothing was run.',
    }
  }
  onStart()
  const explained = explainedOf(request.sql)
  const values = [...request.parameters]
  if (explained !== undefined) {
    const { fields, rows } = await client.query<Json[]>({ text: explained, values, ...asArrays })
    const shown = shownRows(fields, request)
    for (const row of rows) if (!addRow(shown, row)) break
    return shown.ending()
  }
  await client.query({ text: `declare shown no scroll cursor for ${request.sql}`, values, ...asArrays })
  return fetched(client, request)
}

const asArrays = { rowMode: 'array', queryMode: 'extended' } as const

/** Begins the transaction; returns whether the role is one to run statements of others as. */
async function begins(
  client: ClientBase,
  { timeoutMs, lockTimeoutMs }: PostgresRequest,
  isTrusted: boolean,
): Promise<boolean> {
  const text = `begin transaction read only;
    set local statement_timeout = ${timeoutMs};
    set local lock_timeout = ${lockTimeoutMs};
    set local idle_in_transaction_session_timeout = ${timeoutMs};
    set local datestyle = 'ISO';
    set local intervalstyle = 'postgres';
    set local bytea_output = 'hex';
    set local extra_float_digits = 1;
    set local client_min_messages = 'error';
    ${roleQuery}`
  // Several statements have several results, which the types of pg do not tell.
  const results = (await client.query({ text, rowMode: 'array' })) as unknown as readonly {
    readonly rows: readonly (readonly unknown[])[]
  }[]
  return isTrusted || results.at(-1)?.rows[0]?.[0] === false
}

/** An EXPLAIN of a statement that reads: no cursor takes one. Of anything else Postgres says that it is no statement. */
function explainedOf(sql: string): string | undefined {
  return /^\s*explain\s+(?:analyze\s+)?(?:verbose\s+)?(?:select|with|values|table)\b/i.test(sql)
    ? sql
    : undefined
}

async function fetched(client: ClientBase, request: PostgresRequest): Promise<StatementEnding> {
  let shown: ShownRows | undefined
  for (let count = firstFetch; ; count *= fetchGrowth) {
    const { fields, rows } = await client.query<Json[]>({
      text: `fetch ${count} from shown`,
      rowMode: 'array',
    })
    shown ??= shownRows(fields, request)
    for (const row of rows) if (!addRow(shown, row)) return shown.ending()
    if (rows.length < count) return shown.ending()
  }
}

function shownRows(fields: readonly { readonly name: string }[], bounds: StatementBounds): ShownRows {
  return new ShownRows(
    fields.map(({ name }) => name),
    bounds,
  )
}

function addRow(shown: ShownRows, row: readonly Json[]): boolean {
  const atLeast = row.reduce((sum: number, value) => sum + (typeof value === 'string' ? value.length : 1), 0)
  return shown.add(atLeast, () => row)
}
