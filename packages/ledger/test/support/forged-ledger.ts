import type { RunId } from '@tallystick/core'
import { commitmentOf, genesisHash, linkHash, rowDigest } from '../../src/record/chain.ts'
import type { RowEnvelope } from '../../src/record/envelope.ts'
import { segmentedCommitment } from '../../src/record/segments/segment-commitments.ts'
import { isSegmentedRow } from '../../src/record/segments/segmented-body.ts'
import { withSegments, type ForgedSegment } from './forged-segments.ts'
import { tamper } from './raw-database.ts'

/** An event on its way into a forged file. Ids are whatever the forger writes. */
export interface ForgedEvent {
  readonly runId: string
  readonly toolCallId?: string
  readonly type: string
  readonly body: Record<string, unknown>
  /** The bytes of the body, where they are no JSON. */
  readonly text?: string
}

interface EventRow {
  readonly pos: number
  readonly first_seq: number | null
  readonly seq: number
  readonly epoch: number
  readonly type: string
  readonly v: number
  readonly turn: number
  readonly tool_call_id: string | null
  readonly at: number
  readonly body: Buffer
}

/**
 * Writes a run anew as an attacker would who may write the file and knows the format: every digest, link and seal fits what
 * is written, so that the chain alone finds nothing.
 */
export function forgeRun(path: string, runId: RunId, change: (event: ForgedEvent) => ForgedEvent): void {
  tamper(path, (database) => {
    const rows = database
      .prepare<[string], EventRow>(
        'select event.*, payload.body from event join payload using (pos) where run_id = ? order by seq',
      )
      .all(runId)
    const moved = database.prepare(
      'update event set run_id = ?, tool_call_id = ?, body_commit = ?, hash = ? where pos = ?',
    )
    const written = database.prepare('update payload set salt = ?, body = ? where pos = ?')
    let hash: Uint8Array = genesisHash
    let forgedId: string = runId
    for (const { pos, first_seq: first, seq, epoch, type, v, turn, tool_call_id: call, at, body } of rows) {
      const isSegmented = isSegmentedRow({ type, first_seq: first })
      const forge = (said: ForgedSegment): ForgedEvent => {
        const { text, ...event } = said
        const forged = change({ runId, ...event, body: JSON.parse(text) as Record<string, unknown> })
        forgedId = forged.runId
        return forged
      }
      const own = { type, text: body.toString(), ...(call !== null && { toolCallId: call }) }
      const { bytes, toolCallId } = isSegmented ? forgedSegments(runId, body, forge) : forgedBody(forge(own))
      const several = first === null ? {} : { firstSeq: first }
      const envelope = {
        runId: forgedId,
        ...several,
        seq,
        epoch,
        turn,
        toolCallId,
        type,
        v,
        at,
      } as RowEnvelope
      const salt = Buffer.alloc(16, seq)
      const nothing = Buffer.alloc(0)
      const commitment = isSegmented
        ? (segmentedCommitment({ salt, body: bytes }) ?? nothing)
        : commitmentOf(salt, bytes)
      hash = linkHash(hash, envelope, commitment)
      moved.run(forgedId, toolCallId ?? null, isSegmented ? nothing : commitment, hash, pos)
      written.run(salt, bytes, pos)
    }
    const last = rows.at(-1)
    const row = database
      .prepare<[string], { pos: number; epoch: number }>('select pos, epoch from run where run_id = ?')
      .get(runId)
    if (!last || !row) throw new Error(`There is no run ${runId} to forge.`)
    const seal = rowDigest({ ...row, runId: forgedId, headSeq: last.seq, headHash: hash })
    database
      .prepare('update run set run_id = ?, head_hash = ?, seal = ? where run_id = ?')
      .run(forgedId, hash, seal, runId)
  })
}

interface ForgedBytes {
  readonly bytes: Uint8Array
  readonly toolCallId: string | undefined
}

function forgedSegments(
  runId: string,
  body: Uint8Array,
  forge: (segment: ForgedSegment) => ForgedEvent,
): ForgedBytes {
  const bytes = withSegments(runId, body, (said) => {
    const forged = forge(said)
    return { ...forged, text: textOf(forged) }
  })
  return { bytes, toolCallId: undefined }
}

function forgedBody(forged: ForgedEvent): ForgedBytes {
  return { bytes: Buffer.from(textOf(forged)), toolCallId: forged.toolCallId }
}

function textOf({ text, body }: ForgedEvent): string {
  return text ?? JSON.stringify(body)
}
