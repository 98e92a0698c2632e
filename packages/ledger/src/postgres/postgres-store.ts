import { ConfigurationError, LedgerUnavailableError, RunNotFoundError, type RunId } from '@tallystick/core'
import { requireOptions } from '@tallystick/core/internal'
import { createEndedError } from '@tallystick/core/store-kit'
import type { Head, LeaseClaim, TakeOverClaim } from '@tallystick/core/vocabulary'
import type { Observable } from 'rxjs'
import type { RemovalRequest } from '../format/chain.ts'
import { isRunId, type Fault } from '../format/event-row.ts'
import { type InboxRow, loadQueries, type Queries, type StoreDatabase } from '../store/database.ts'
import { readRun } from '../store/records.ts'
import { removeContent } from '../store/removals.ts'
import type { AppendRequest, Store, StoredWait } from '../store/store.ts'
import type { BegunTail, TailStart } from '../store/tail-events.ts'
import { Appender } from './append.ts'
import { findDatabaseFault } from './audit.ts'
import { ChangeFeed, encodeWord, nameChannel } from './changes.ts'
import {
  type Answer,
  Connections,
  isAfterEnd,
  isMissingTable,
  isOutsideTransaction,
  loadPg,
  requirePg,
  toLedgerError,
} from './connections.ts'
import { carryOut, openSchema, type OpenSchema } from './database.ts'
import {
  parseDatabasePlace,
  postgresLedgerOptions,
  type DatabasePlace,
  type PostgresClient,
  type PostgresLedgerOptions,
  putOptions,
  type TailHorizon,
} from './options.ts'
import { durabilityText, placeInSchema, inspectSchema, makeSchema, nowText } from './schema.ts'
import { beginTail, readTailMark, readHorizon } from './tail.ts'

interface Opened {
  readonly connections: Connections
  readonly database: OpenSchema
  readonly queries: Queries
  readonly appender: Appender
}

interface PutRow {
  readonly runs: number
  readonly entries: number
}

/** First the run becomes due: of two puts one waits there for the other. */
const putText = `with known as (select run_id from @.run where run_id = $1),
    woken as (
      update @.run set due_at = case when ended_at is null then 0 end
      where run_id = $1 and not exists (select from @.inbox where run_id = $1 and key = $2::text) returning run_id
    ),
    put as (
      insert into @.inbox (run_id, key, at, command) select run_id, $2::text, $3::int8, $4::text from woken
      on conflict (run_id, key) do nothing returning pos
    )
  select (select count(*)::int4 from known) as runs, (select count(*)::int4 from put) as entries, ${durabilityText.barrier}`

/** The same, told to every ledger at the commit. */
const toldPutText = `${putText}, case when exists (select from put) then pg_notify($5::text, $6::text)::text end`

function createNoTransactionError(): ConfigurationError {
  return new ConfigurationError(
    'ledger.put was given a client on which no transaction is open, so the command and what belongs to it would not be one ' +
      "commit. Nothing was written. Begin one first: await client.query('begin').",
  )
}

function createOtherDatabaseError(): ConfigurationError {
  return new ConfigurationError(
    'ledger.put was given a client that does not see the run, though the ledger has it: it is connected to another database, or its ' +
      'transaction began before the run. Nothing was written. Use a client of the database of the ledger.',
  )
}

const releaseText = `update @.run set lease_holder = null, lease_until = null
    where run_id = $1 and lease_holder = $2 returning ${durabilityText.lazy}`

/**
 * The same where the run waits. What makes a run due writes its row, so another version of the row than the one that was seen says that
 * it has become due meanwhile: what is read beside the row may be older than that.
 */
const restText = `with seen as materialized (
    select run_id, xmin as version,
      exists (select from @.inbox where inbox.run_id = run.run_id and taken_seq is null)
        or exists (select from @.run as child where child.run_id = any ($4::text[]) and child.ended_at is not null) as is_asked
    from @.run where run_id = $1
  )
  update @.run set lease_holder = null, lease_until = null, due_at = case
      when run.ended_at is not null then null when seen.is_asked or run.xmin <> seen.version then 0 else $3::int8 end
    from seen where run.run_id = seen.run_id and run.lease_holder = $2 returning ${durabilityText.lazy}`

/**
 * A schema as a store. It is opened at the first use; if that fails, the next use tries again. Refuses calls that must not
 * happen, and reports failures as our errors.
 */
export class PostgresStore implements Store {
  readonly database: StoreDatabase
  readonly #place: DatabasePlace
  readonly #options: PostgresLedgerOptions
  readonly #isWritable: boolean
  readonly #feed: ChangeFeed
  #connections: Promise<Connections> | undefined
  #opened: Promise<Opened> | undefined
  readonly #underWay = new Set<Promise<unknown>>()
  #isClosed = false

  /** Throws a `ConfigurationError` if the options cannot work. Connects to nothing yet. */
  constructor(options: PostgresLedgerOptions) {
    requireOptions('postgresLedger', postgresLedgerOptions, options)
    requirePg()
    this.#place = parseDatabasePlace(options)
    this.#options = options
    this.#isWritable = !options.readOnly
    this.database = {
      isWritable: this.#isWritable,
      maxScanned: 65_536,
      now: nowText,
      requireOpen: () => this.#requireOpen(),
      ask: (text, values) => this.#read(({ database }) => database.ask(text, values)),
      askBatch: (text, order, values) => this.#read(({ database }) => database.askBatch(text, order, values)),
      query: (build, options) => this.#read(({ database }) => database.query(build, options)),
      change: (steps) => this.#write(({ database }) => database.change(steps)),
    }
    this.#feed = new ChangeFeed(
      {
        marks: (runIds) => this.#marks(runIds),
        tailMark: () => this.#read(({ database }) => readTailMark(database)),
        // Over the connections of the store that is open, and also while it closes.
        tell: async (channel, payload) =>
          void (await (
            await this.#opened
          )?.database.ask(`select pg_notify($1::text, $2::text), ${durabilityText.lazy}`, [
            channel,
            payload,
          ])),
      },
      options,
      this.#place.schema,
    )
  }

  append(request: AppendRequest): Promise<Head> {
    return this.#write(({ appender }) => appender.append(request))
  }

  acquire(runId: RunId, claim?: TakeOverClaim): Promise<Head> {
    return this.#write(({ appender }) => appender.acquire(runId, claim))
  }

  async renew(runIds: readonly RunId[], { holder, forMs }: LeaseClaim): Promise<readonly RunId[]> {
    const rows = await this.#write(({ database }) =>
      database.ask<{ readonly run_id: RunId }>(
        `update @.run set lease_until = ${nowText} + $2::int8
          where run_id = any ($3::text[]) and lease_holder = $1 returning run_id, ${durabilityText.lazy}`,
        [holder, Math.ceil(forMs), runIds.filter(isRunId)],
      ),
    )
    const renewed = new Set(rows.map(({ run_id }) => run_id))
    return runIds.filter((runId) => renewed.has(runId))
  }

  release(runId: RunId, holder: string, wait?: StoredWait): Promise<void> {
    return this.#write(async ({ database }) => {
      if (wait) await database.ask(restText, [runId, holder, wait.dueAt, wait.children])
      else await database.ask(releaseText, [runId, holder])
    })
  }

  put(runId: RunId, { key, command, at }: InboxRow, within?: unknown): Promise<boolean> {
    requireOptions('ledger.put', putOptions, { within })
    return this.#write(async ({ connections, database }) => {
      if (!isRunId(runId)) throw new RunNotFoundError(runId)
      const { quotedSchema, schema } = this.#place
      const values = [runId, key, at, command]
      const isWithin = within !== undefined
      const word = encodeWord({ from: '', runIds: [runId] })
      const put = isWithin
        ? this.#putWithin(within as PostgresClient, placeInSchema(toldPutText, quotedSchema), [
            ...[...values, nameChannel(schema), word],
          ])
        : connections.send<PutRow>({
            name: 'tallystick put',
            text: placeInSchema(putText, quotedSchema),
            values,
          })
      const { rows, wasResent } = await put.catch((error: unknown) => {
        throw isAfterEnd(error) ? createEndedError(runId) : error
      })
      if (rows[0]?.runs !== 1) {
        if (isWithin && (await readRun(database, runId))) throw createOtherDatabaseError()
        throw new RunNotFoundError(runId)
      }
      if (rows[0].entries === 1 || !wasResent) return rows[0].entries === 1
      // If the answer to the first try was lost, its own entry may refuse the second.
      const [row] = await database.ask<InboxRow>(
        'select command, at from @.inbox where run_id = $1 and key = $2',
        [runId, key],
      )
      return row?.at === at && row.command === command
    })
  }

  /** Within a savepoint: what is refused is undone alone. */
  async #putWithin(client: PostgresClient, text: string, values: unknown[]): Promise<Answer<PutRow>> {
    try {
      await client.query('savepoint tallystick')
    } catch (error) {
      throw isOutsideTransaction(error) ? createNoTransactionError() : error
    }
    try {
      const { rows } = await client.query(text, values)
      await client.query('release savepoint tallystick')
      return { rows: rows as readonly PutRow[], wasResent: false }
    } catch (error) {
      // Released too, so that a savepoint of the application that has the same name is not hidden by it.
      const undo = async (): Promise<void> => {
        await client.query('rollback to savepoint tallystick')
        await client.query('release savepoint tallystick')
      }
      await undo().catch(() => undefined)
      throw isMissingTable(error) ? createOtherDatabaseError() : error
    }
  }

  changes(runId?: RunId, part?: 'inbox'): Observable<void> {
    return runId === undefined ? this.#feed.ofAll() : this.#feed.of(runId, part)
  }

  changed(runId: RunId, isInbox: boolean): void {
    this.#feed.notify(runId, isInbox)
  }

  /** A run whose mark differs from one poll to the next has changed. Runs that are not there have no mark. */
  async #marks(runIds: readonly string[]): Promise<ReadonlyMap<string, string>> {
    const rows = await this.database.ask<{ readonly run_id: string; readonly mark: string }>(
      `select run_id, head_seq || ' ' || epoch || ' ' || coalesce(
        (select max(pos) from @.inbox where inbox.run_id = run.run_id and taken_seq is null), 0) as mark
      from @.run where run_id = any ($1::text[])`,
      [runIds],
    )
    return new Map(rows.map(({ run_id, mark }) => [run_id, mark]))
  }

  async beginTail(after: TailStart): Promise<BegunTail> {
    const begun = await this.#read(({ appender, database }) =>
      beginTail(database, after, {
        harden: () => appender.sync(),
        description: this.#place.description,
      }),
    )
    if (begun.isHeldBack) this.#feed.pollSoon()
    return { ...begun, batch: (place) => this.#read(() => begun.batch(place)) }
  }

  horizon(): Promise<TailHorizon> {
    return this.#read(({ database }) => readHorizon(database))
  }

  findFault(): Promise<Fault | undefined> {
    return this.#read(({ connections }) => findDatabaseFault(connections, this.#place))
  }

  async remove(requests: readonly RemovalRequest[]): Promise<number> {
    const removed = await this.#write(({ connections, queries }) =>
      connections.transact(
        async (query) => {
          const lock = 'lock table @.removal, @.history in share row exclusive mode'
          // Removals are chained, and a message that is in use a moment later must not be found unused.
          await query({ text: placeInSchema(lock, this.#place.quotedSchema), values: [] })
          return await carryOut(removeContent(queries, requests), query)
        },
        { patiently: true },
      ),
    )
    for (const runId of new Set(requests.map((request) => request.runId))) this.changed(runId, true)
    return removed
  }

  /** Waits for work in flight, syncs lazy commits, and ends every connection. */
  async close(): Promise<void> {
    this.#isClosed = true
    try {
      await Promise.allSettled(this.#underWay)
      await this.#feed.close()
      const opened = await this.#opened?.catch(() => undefined)
      await opened?.appender.harden()
    } catch (error) {
      throw toLedgerError(error, this.#place.description)
    } finally {
      await this.#connections?.then(
        (connections) => connections.end(),
        () => undefined,
      )
    }
  }

  #requireOpen(): void {
    if (!this.#isClosed) return
    throw new LedgerUnavailableError(
      `The ledger at ${this.#place.description} was closed, so it can neither be read nor written. Open it again with postgresLedger().`,
    )
  }

  /** Closing waits for it. It rejects with a `TallystickError`. */
  async #read<T>(work: (opened: Opened) => Promise<T>): Promise<T> {
    this.#requireOpen()
    const working = this.#open().then(work)
    this.#underWay.add(working)
    try {
      return await working
    } catch (error) {
      throw toLedgerError(error, this.#place.description)
    } finally {
      this.#underWay.delete(working)
    }
  }

  #write<T>(work: (opened: Opened) => Promise<T>): Promise<T> {
    return this.#read((opened) => {
      if (this.#isWritable) return work(opened)
      throw new LedgerUnavailableError(
        `The ledger at ${this.#place.description} was opened with readOnly, so nothing was written. Open it without readOnly to drive or command runs.`,
      )
    })
  }

  #open(): Promise<Opened> {
    this.#opened ??= this.#openAnew()
    this.#opened.catch(() => {
      this.#opened = undefined
    })
    return this.#opened
  }

  async #openAnew(): Promise<Opened> {
    const connections = await this.#connect()
    const { quotedSchema } = this.#place
    const found = await inspectSchema(
      (statement) => connections.rows(statement),
      this.#place,
      !this.#isWritable,
    )
    if (found.kind === 'nothing') await makeSchema(this.#options, this.#place, connections.pg)
    const queries = await loadQueries(this.#place.schema)
    const database = openSchema(connections, quotedSchema, queries)
    return { connections, database, queries, appender: new Appender(connections, database, quotedSchema) }
  }

  #connect(): Promise<Connections> {
    this.#connections ??= loadPg().then((pg) => new Connections(this.#options, pg))
    this.#connections.catch(() => {
      this.#connections = undefined
    })
    return this.#connections
  }
}
