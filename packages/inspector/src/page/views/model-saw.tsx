import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import { goTo, lastSeq, lines, moment, worker } from '../state/open-run.ts'
import { runId } from '../state/route.ts'
import { useRead } from '../state/use-read.ts'
import { fence } from '../ui/fence.ts'
import { LineDiff } from '../ui/line-diff.tsx'
import { Same } from '../ui/same.tsx'
import { Seqs } from '../ui/seqs.tsx'
import { formatCost, LongText, showHidden } from '../ui/text.tsx'
import type { Origin, Saw, SawPart } from '../worker/saw.ts'
import { Attempts, Reply } from './model-reply.tsx'

const names: Readonly<Record<Origin, string>> = {
  instructions: 'Instructions',
  tools: 'Tools',
  schema: 'Output schema',
  user: 'User',
  reply: 'Reply',
  results: 'Results',
  summary: 'Summary',
  edit: 'Edited',
  turn: 'This turn only',
}
const signs = { added: '+ new', changed: '~ changed', same: '' } as const

/** The request of the turn that is looked at, part by part, and the reply to it. */
export function ModelSaw(): JSX.Element {
  const now = moment.value
  // Before the first call of a model, the first request is what follows.
  const turn = Math.max(1, now?.turn ?? 1)
  const key = now && `${runId.value} ${turn} ${findLastOfCall(turn, lastSeq.value)}`
  const { value: saw, error, isOld } = useRead(key, () => worker.readSaw(turn))
  if (error !== undefined) {
    return (
      <p class="notice bad" role="alert">
        The request of turn {turn} cannot be rebuilt: {showHidden(error)}
      </p>
    )
  }
  if (saw === undefined) {
    return (
      <p class="soft">{isOld || now === undefined ? 'Reading …' : `No model was asked in turn ${turn}.`}</p>
    )
  }
  return (
    <div class="saw" aria-busy={isOld}>
      <Head saw={saw} />
      <Warnings saw={saw} />
      <TokenBar saw={saw} />
      <Parts saw={saw} />
      <Attempts attempts={saw.attempts} />
      <Reply turn={saw.turn} />
      <Same
        command={['explain', 'LEDGER', runId.value ?? '', String(saw.turn)]}
        path={`runs/${runId.value}/explain?turn=${saw.turn}`}
        json={() => saw}
        markdown={() => toMarkdown(saw)}
      />
    </div>
  )
}

const ofCall: ReadonlySet<string> = new Set([
  ...['model_call_started', 'usage_updated', 'model_stream_failed', 'assistant_message_finished'],
])

/** The last event that says something about the request of a turn or its attempts: deltas of the reply do not. */
function findLastOfCall(turn: number, known: number): number {
  const found = known > 0 ? lines.findLast((line) => line.turn === turn && ofCall.has(line.type)) : undefined
  return found?.seq ?? 0
}

function Head({ saw }: { readonly saw: Saw }): JSX.Element {
  const { turn, turns, agent, model, attempts, toolChoice, settings } = saw
  const place = turns.findIndex((each) => each.turn === turn)
  const goToPlace = (to: number): void => goTo(turns[to]!.seq)
  const { is, recorded } = attempts.at(-1)!.digest
  return (
    <header class="saw-head">
      <button
        type="button"
        class="quiet"
        aria-label="The turn before"
        disabled={place <= 0}
        onClick={() => goToPlace(place - 1)}
      >
        ‹
      </button>
      <b>
        Turn {turn} of {turns.at(-1)?.turn}
      </b>
      <button
        type="button"
        class="quiet"
        aria-label="The next turn"
        disabled={place >= turns.length - 1}
        onClick={() => goToPlace(place + 1)}
      >
        ›
      </button>
      <span class="soft">
        {showHidden(agent)}, {showHidden(model)}, tool choice {showHidden(toolChoice)}
        {settings !== undefined && `, ${showHidden(settings)}`}
      </span>
      {is === 'same' && (
        <span class="badge good" title={`The request rebuilt here has the recorded digest ${recorded}.`}>
          ✓ as recorded
        </span>
      )}
      {is === 'other' && <span class="badge bad">✕ not as recorded</span>}
      {is === 'gone' && <span class="badge wait">digest not checked</span>}
    </header>
  )
}

/** Where what the service got may differ from what is shown. */
function Warnings({ saw: { attempts, additions, overrides } }: { readonly saw: Saw }): JSX.Element {
  const { is, recorded, rebuilt = '' } = attempts.at(-1)!.digest
  const [replaced, added] = [
    additions.filter((each) => each.replaces),
    additions.filter((each) => !each.replaces),
  ]
  return (
    <>
      {is === 'other' && (
        <p class="notice bad">
          The request rebuilt from the events has the digest <code>{rebuilt}</code>, and the record says{' '}
          <code>{showHidden(recorded)}</code>: what is shown is not what was sent.
        </p>
      )}
      {is === 'gone' && (
        <p class="notice">
          Content that the request held was removed, so its digest cannot be computed again.
        </p>
      )}
      {replaced.length > 0 && (
        <p class="notice wait">
          Sent in place of what is shown, by options of the model: {listFields(replaced)}. The values are not
          on record.
        </p>
      )}
      {added.length > 0 && (
        <p class="notice">
          Sent in addition, by options of the model: {listFields(added)}. The values are not on record.
        </p>
      )}
      {overrides.length > 0 && (
        <p class="notice">
          The agent prepared this turn: it has its own {overrides.map((text) => showHidden(text)).join(', ')}.
        </p>
      )}
    </>
  )
}

function listFields(additions: Saw['additions']): string {
  return additions.map(({ field, option }) => `${showHidden(field)} (${showHidden(option)})`).join(', ')
}

/** The parts by their tokens; what came from the provider's cache is hatched. */
function TokenBar({ saw: { parts, tokens } }: { readonly saw: Saw }): JSX.Element {
  const total = parts.reduce((sum, part) => sum + part.tokens, 0)
  const { estimated, billed, cached } = tokens
  const words = [
    `about ${estimated.toLocaleString()} tokens`,
    ...(billed === undefined ? [] : [`${billed.toLocaleString()} billed`]),
    ...(cached === undefined || !billed
      ? []
      : [`${cached.toLocaleString()} of them cached (${Math.round((100 * cached) / billed)} %)`]),
  ].join(', ')
  return (
    <div class="token-bar">
      <div class="segments" role="img" aria-label={`Parts of the request by tokens: ${words}`}>
        {parts.map((part) => (
          <span
            key={part.key}
            class={`segment of-${part.origin}`}
            style={{ flexGrow: Math.max(part.tokens, total / 200) }}
            title={`${names[part.origin]}: about ${part.tokens} tokens`}
          >
            {part.cached > 0 && <i style={{ width: `${(100 * part.cached) / Math.max(1, part.tokens)}%` }} />}
          </span>
        ))}
      </div>
      <p class="soft">{words}</p>
    </div>
  )
}

function Parts({ saw }: { readonly saw: Saw }): JSX.Element {
  const { parts, removed, turns, turn, leftOut } = saw
  const [isChangesOnly, setChangesOnly] = useState(false)
  const before = turns.findLast((each) => each.turn < turn)
  const changed = parts.filter(({ change }) => change === 'added' || change === 'changed')
  const shown = isChangesOnly && before ? changed : parts
  return (
    <>
      {before && (
        <div class="saw-changes">
          <span class="soft">
            Since turn {before.turn}: {countWords(parts, removed)}
          </span>
          <label>
            <input
              type="checkbox"
              checked={isChangesOnly}
              onChange={(event) => setChangesOnly(event.currentTarget.checked)}
            />
            changes only
          </label>
        </div>
      )}
      {isChangesOnly && before && removed.map((part) => <Part key={`- ${part.key}`} part={part} isRemoved />)}
      {shown.map((part) => (
        <Part key={part.key} part={part} />
      ))}
      {!isChangesOnly && removed.map((part) => <Part key={`- ${part.key}`} part={part} isRemoved />)}
      {leftOut.length > 0 && (
        <p class="soft">
          Not shown to the model in this turn: {leftOut.length} earlier{' '}
          {leftOut.length === 1 ? 'message' : 'messages'}, from events{' '}
          <Seqs seqs={leftOut.flatMap(({ seqs }) => seqs.at(-1) ?? [])} />
        </p>
      )}
    </>
  )
}

function countWords(parts: readonly SawPart[], removed: readonly SawPart[]): string {
  const count = (change: string): number => parts.filter((part) => part.change === change).length
  const found = [
    [count('added'), 'new'],
    [count('changed'), 'changed'],
    [removed.length, 'gone'],
  ] as const
  const words = found.filter(([amount]) => amount > 0).map(([amount, what]) => `${amount} ${what}`)
  return words.length === 0 ? 'nothing has changed' : words.join(', ')
}

function Part({ part, isRemoved }: { readonly part: SawPart; readonly isRemoved?: true }): JSX.Element {
  const { origin, text, before, change, seqs, tokens, cached, costUsd, replaced } = part
  // What is new is read; the rest is looked up.
  const isOpen = !isRemoved && (change !== 'same' || origin === 'user')
  return (
    <details class={`part of-${origin}${isRemoved ? ' removed' : ''}`} open={isOpen}>
      <summary>
        <b>{names[origin]}</b>
        {isRemoved ? (
          <span class="badge bad">− gone</span>
        ) : (
          change !== undefined && change !== 'same' && <span class="badge live">{signs[change]}</span>
        )}
        {replaced !== undefined && (
          <span class="soft">
            stands for {replaced} {replaced === 1 ? 'message' : 'messages'}
          </span>
        )}
        <span class="excerpt soft">{showHidden(text.text.slice(0, 80).replaceAll(/\s+/g, ' '))}</span>
        <span class="end soft">
          {cached > 0 && <span title="Tokens read from the provider's cache, by place">▨ </span>}~
          {tokens.toLocaleString()}
          {costUsd !== undefined && ` · ${formatCost(costUsd)}`}
        </span>
      </summary>
      <div class="content">
        <p class="soft from">
          from event <Seqs seqs={seqs} />
        </p>
        {before === undefined ? (
          <LongText text={text.text} length={text.length} />
        ) : (
          <LineDiff before={before.text} after={text.text} />
        )}
      </div>
    </details>
  )
}

function toMarkdown({ turn, agent, model, parts, removed, attempts }: Saw): string {
  const digest = attempts.at(-1)!.digest
  const lines = parts.map(({ origin, change = 'same', tokens, seqs, text }) =>
    [
      `## ${names[origin]}${change === 'same' ? '' : ` (${change})`}`,
      '',
      `About ${tokens} tokens, from events ${seqs.join(', ')}.`,
      '',
      fence(text.text),
    ].join('\n'),
  )
  return [
    `# What the model saw in turn ${turn}`,
    `Agent ${agent}, model ${model}. Request ${digest.recorded}: ${digest.is === 'same' ? 'as recorded' : digest.is === 'other' ? 'not as recorded' : 'not checked'}.`,
    ...lines,
    ...removed.map(({ origin, text }) => `## Gone: ${names[origin]}\n\n${fence(text.text)}`),
  ].join('\n\n')
}
