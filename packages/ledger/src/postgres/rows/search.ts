import {
  isTimed,
  pageOf,
  type AskedEvents,
  type Cursor,
  type FoundPage,
  type FoundRow,
  type SearchedRun,
  type SearchedStore,
  type Strand,
} from '../../read/event-search.ts'
import type { Connections } from '../connection/connections.ts'
import { searchTexts, type SearchTexts } from './search-texts.ts'
import { bytesPerPage, eventsPerPage } from './statements.ts'
import { isRunId } from '../../record/stored-ids.ts'
import { isStorable } from '../connection/storable-name.ts'

/** A page looks at this many events at most, so that a search for what is rare stays within the time of a statement. */
const lookedAtMax = 65_536

interface RunPlace {
  readonly run_id: string
  readonly pos: number
  readonly head_seq: number
}

/** What a search asks of the schema. */
export class PostgresSearch implements SearchedStore {
  readonly #connections: Connections
  readonly texts: SearchTexts

  constructor(connections: Connections, quotedSchema: string) {
    this.#connections = connections
    this.texts = searchTexts(quotedSchema)
  }

  async runs({ runId: asked, sessionId, toolCallId }: AskedEvents): Promise<readonly SearchedRun[]> {
    // What Postgres cannot hold names nothing that is there.
    if (![asked, sessionId, toolCallId].every((name) => isStorable(name ?? ''))) return []
    const named = [asked ?? null, sessionId ?? null]
    const rows = await this.#connections.rows<RunPlace>(
      toolCallId === null
        ? { text: this.texts.runs, values: named }
        : { text: this.texts.runsOfCall, values: [...named, toolCallId] },
    )
    return rows.flatMap(({ run_id: runId, pos, head_seq: headSeq }) => {
      return isRunId(runId) ? [{ runId, pos, headSeq }] : []
    })
  }

  async places(
    asked: AskedEvents,
  ): Promise<{ readonly fromPos: number; readonly toPos: number } | undefined> {
    const [row] = await this.#connections.rows<{ fromPos: number | null; toPos: number | null }>(
      isTimed(asked)
        ? { text: this.texts.placesAt, values: [asked.fromAt, asked.toAt] }
        : { text: this.texts.places, values: [] },
    )
    const { fromPos, toPos } = row ?? {}
    return fromPos != null && toPos != null ? { fromPos, toPos } : undefined
  }

  async page(asked: AskedEvents, strand: Strand, after: Cursor): Promise<FoundPage> {
    const looked = lookedAt(strand, after)
    const types = asked.types?.filter(isStorable) ?? null
    const [from, to] = strand.by === 'place' ? [after.pos, looked.pos] : [after.seq, looked.seq]
    const values = [asked.fromAt, asked.toAt, asked.turn, types, from, to, ...keysOf(asked, strand)]
    if (strand.by === 'type' && !isStorable(strand.type)) return { rows: [] }
    const rows = await this.#connections.rows<FoundRow>({
      name: `tallystick find by ${strand.by}`,
      text: this.texts.page[strand.by],
      values,
    })
    return pageOf(rows, isFull(rows), strand, looked)
  }
}

/** How far a page looks. The indexes by turn, type and call pass over nothing. */
function lookedAt(strand: Strand, { pos, seq }: Cursor): Cursor {
  if (strand.by === 'place') return { pos: Math.min(pos + lookedAtMax, strand.toPos), seq }
  const { headSeq } = strand.run
  return { pos, seq: strand.by === 'run' ? Math.min(seq + lookedAtMax, headSeq) : headSeq }
}

/** The run of a strand, and the type or the call. */
function keysOf({ toolCallId }: AskedEvents, strand: Strand): readonly unknown[] {
  if (strand.by === 'place') return []
  const { runId } = strand.run
  if (strand.by === 'type') return [runId, strand.type]
  return strand.by === 'call' ? [runId, toolCallId] : [runId]
}

function isFull(rows: readonly FoundRow[]): boolean {
  const bytes = rows.reduce((sum, { body }) => sum + (body?.length ?? 0), 0)
  return rows.length === eventsPerPage || bytes >= bytesPerPage
}
