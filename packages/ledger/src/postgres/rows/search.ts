import {
  isTimed,
  lastRowAt,
  rowTypesOf,
  batchOf,
  type AskedEvents,
  type Cursor,
  type FoundBatch,
  type FoundRow,
  type SearchedRun,
  type SearchedStore,
  type SearchSource,
} from '../../read/event-search.ts'
import { runIdOfCall } from '@tallystick/core/vocabulary'
import type { Connections } from '../connection/connections.ts'
import { searchTexts, type SearchTexts } from './search-texts.ts'
import { bytesPerBatch, eventsPerBatch } from './statements.ts'
import { isRunId } from '../../record/stored-ids.ts'
import { isStorable } from '../connection/storable-name.ts'

/** A batch looks at this many events at most, so that a search for what is rare stays within the time of a statement. */
const maxScanned = 65_536

interface RunPlace {
  readonly run_id: string
  readonly pos: number
  readonly head_seq: number
}

/** What a search asks of the schema. */
export class PostgresSearch implements Omit<SearchedStore, 'hasIndexOf' | 'requireOpen'> {
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
    const own = toolCallId === null ? undefined : runIdOfCall(toolCallId)
    const rows = await this.#connections.rows<RunPlace>(
      toolCallId === null
        ? { text: this.texts.runs, values: named }
        : { text: this.texts.runsOfCall, values: [...named, toolCallId, own ?? ''] },
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
        ? { text: this.texts.placesAt, values: [asked.fromAt, lastRowAt(asked)] }
        : { text: this.texts.places, values: [] },
    )
    const { fromPos, toPos } = row ?? {}
    return fromPos != null && toPos != null ? { fromPos, toPos } : undefined
  }

  async batch(asked: AskedEvents, source: SearchSource, after: Cursor): Promise<FoundBatch> {
    const scanned = scannedTo(source, after)
    const types = rowTypesOf(asked, source)?.filter(isStorable) ?? null
    const turn = source.by === 'turn' ? source.turn : asked.turn
    const [from, to] = source.by === 'place' ? [after.pos, scanned.pos] : [after.seq, scanned.seq]
    const values = [asked.fromAt, lastRowAt(asked), turn, types, from, to, ...keysOf(asked, source)]
    if (source.by === 'type' && !isStorable(source.type)) return { rows: [] }
    const rows = await this.#connections.rows<FoundRow>({
      name: `tallystick find by ${source.by}`,
      text: this.texts.batch[source.by],
      values,
    })
    return batchOf(rows, isFull(rows), source, scanned)
  }
}

/** How far a batch looks. The indexes by turn, type and call pass over nothing. */
function scannedTo(source: SearchSource, { pos, seq }: Cursor): Cursor {
  if (source.by === 'place') return { pos: Math.min(pos + maxScanned, source.toPos), seq }
  const { headSeq } = source.run
  return { pos, seq: source.by === 'run' ? Math.min(seq + maxScanned, headSeq) : headSeq }
}

/** The run of a source, and the type or the call. */
function keysOf({ toolCallId }: AskedEvents, source: SearchSource): readonly unknown[] {
  if (source.by === 'place') return []
  const { runId } = source.run
  if (source.by === 'type') return [runId, source.type]
  return source.by === 'call' ? [runId, toolCallId] : [runId]
}

function isFull(rows: readonly FoundRow[]): boolean {
  const bytes = rows.reduce((sum, { body }) => sum + (body?.length ?? 0), 0)
  return rows.length === eventsPerBatch || bytes >= bytesPerBatch
}
