import type { JSX } from 'preact'
import { lastSeq, seq, worker } from '../state/open-run.ts'
import { go, runId } from '../state/route.ts'
import { useRead } from '../state/use-read.ts'
import { Seqs } from '../ui/seqs.tsx'
import { formatCost, formatDuration, LongText, showHidden } from '../ui/text.tsx'
import type { ReplyAt, ReplyPiece, SawAttempt } from '../worker/saw.ts'

/** The attempts of a turn's call, where more than one was made or one failed. */
export function Attempts({ attempts }: { readonly attempts: readonly SawAttempt[] }): JSX.Element | null {
  if (attempts.length === 1 && attempts[0]?.failure === undefined) return null
  return (
    <section class="section">
      <h3>Attempts</h3>
      <ol class="attempts">
        {attempts.map(({ attempt, seq: at, model, outcome, failure, durationMs, costUsd, digest }) => (
          <li key={attempt} class={outcome === 'failed' ? 'failed' : ''}>
            <b>{attempt}</b>
            <span class={`badge ${outcome === 'answered' ? 'good' : outcome === 'failed' ? 'bad' : 'wait'}`}>
              {outcome.replaceAll('_', ' ')}
            </span>
            <span>{showHidden(model)}</span>
            {durationMs !== undefined && <span class="soft">{formatDuration(durationMs)}</span>}
            {costUsd !== undefined && <span class="soft">{formatCost(costUsd)}</span>}
            {digest.is === 'other' && <span class="badge bad">request not as recorded</span>}
            <Seqs seqs={[at]} />
            {failure !== undefined && <pre class="failure">{showHidden(failure)}</pre>}
          </li>
        ))}
      </ol>
    </section>
  )
}

/** The reply of a turn, as far as it had come at the event that is looked at. */
export function Reply({ turn }: { readonly turn: number }): JSX.Element | null {
  const at = seq.value
  const key = `${runId.value} ${turn} ${at} ${lastSeq.value > 0}`
  const { value: reply } = useRead(key, () => worker.readReply(turn, at))
  if (reply === undefined) return null
  return (
    <section class="section reply">
      <h3>
        Reply{reply.attempt > 1 && ` of attempt ${reply.attempt}`}
        {reply.isStreaming && <span class="badge live">● streams</span>}
      </h3>
      <p class="soft">
        {describeStream(reply)} <Seqs seqs={[reply.fromSeq, reply.toSeq]} />
      </p>
      {reply.pieces.length === 0 && <p class="soft">Nothing has come yet.</p>}
      {reply.pieces.map((piece, index) => (
        <Piece key={index} piece={piece} />
      ))}
    </section>
  )
}

function describeStream({ firstMs, streamMs, deltas, stopReason, isPartial }: ReplyAt): string {
  const words = [
    ...(firstMs === undefined ? [] : [`begins after ${formatDuration(firstMs)}`]),
    ...(streamMs === undefined || deltas < 2 ? [] : [`${deltas} pieces in ${formatDuration(streamMs)}`]),
    ...(stopReason === undefined ? [] : [`ends: ${stopReason.replaceAll('_', ' ')}`]),
    ...(isPartial ? ['cut off'] : []),
  ]
  return words.join(', ')
}

function Piece({ piece }: { readonly piece: ReplyPiece }): JSX.Element {
  const { kind, name, toolCallId, text, written } = piece
  const kinds = { text: 'assistant', reasoning: 'reasoning', call: 'call' } as const
  return (
    <article class={`said ${kinds[kind]}`}>
      {kind !== 'text' && (
        <header class="by">
          <span>{name === undefined ? 'Reasoning' : <b>{showHidden(name)}</b>}</span>
          {toolCallId !== undefined && (
            <span class="end">
              <button type="button" class="quiet" onClick={() => go({ call: toolCallId, middle: 'call' })}>
                look at the call
              </button>
            </span>
          )}
        </header>
      )}
      <LongText text={text.text} length={text.length} />
      {written !== undefined && (
        <details>
          <summary class="soft">The model wrote something else</summary>
          <LongText text={written.text} length={written.length} />
        </details>
      )}
    </article>
  )
}
