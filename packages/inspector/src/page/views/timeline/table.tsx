import type { JSX } from 'preact'
import { goTo } from '../../state/open-run.ts'
import { timeline } from '../../state/timeline.ts'
import { runId } from '../../state/route.ts'
import { toMarkdownTable } from '../../ui/markdown-table.ts'
import { Same } from '../../ui/same.tsx'
import { formatDuration, showHidden } from '../../ui/text.tsx'
import { useRows } from '../../ui/virtual-list.tsx'
import type { Mark, Span, SpanKind, WaitKind } from '../../worker/timeline.ts'

const spanWords: Readonly<Record<SpanKind, string>> = {
  model: 'model call',
  summary: 'summary of older messages',
  requested: 'requested',
  checked: 'checked',
  approval: 'waits for approval',
  executed: 'executed',
  outside: 'goes on outside',
  retry: 'waits for its next attempt',
  nobody: 'no process',
}

const waitWords: Readonly<Record<WaitKind, string>> = {
  people: 'waits for people',
  outside: 'waits for what goes on outside',
  time: 'waits for time',
  nobody: 'no process',
  fork: 'before the fork',
}

const markWords: Readonly<Record<Mark['kind'], string>> = {
  take_over: 'taken over',
  input: 'input',
  handoff: 'handed off',
  limit: 'limit reached',
  guardrail: 'guardrail',
  cancel: 'cancelled',
  end: 'ended',
}

/** A span in words: `executed, attempt 2, timeout, 1.2 s, event 31`. */
export function describeSpan(span: Span, until?: number): string {
  const { kind, from, to = until, seq, attempt, failed, answeredAt } = span
  return [
    spanWords[kind],
    attempt !== undefined && attempt > 1 && `attempt ${attempt}`,
    failed?.replaceAll('_', ' '),
    to === undefined ? 'goes on' : formatDuration(to - from),
    answeredAt !== undefined && `first token after ${formatDuration(answeredAt - from)}`,
    `event ${seq}`,
  ]
    .filter(Boolean)
    .join(', ')
}

interface Line {
  readonly seq: number
  readonly from: number
  readonly to?: number | undefined
  readonly who: string
  readonly what: string
  readonly how?: string | undefined
}

function listLines(): readonly Line[] {
  const { lanes = [], waits = [], marks = [] } = timeline.value ?? {}
  const lines: Line[] = [
    ...lanes.flatMap(({ name, spans }) =>
      spans.map(({ seq, from, to, kind, failed, attempt }) => ({
        ...{ seq, from, to, who: name, how: failed },
        what:
          attempt !== undefined && attempt > 1 ? `${spanWords[kind]}, attempt ${attempt}` : spanWords[kind],
      })),
    ),
    ...waits.map(({ seq, from, to, kind }) => ({ seq, from, to, who: 'run', what: waitWords[kind] })),
    ...marks.map(({ seq, at, kind, text }) => ({
      ...{ seq, from: at, to: at, who: 'run', what: markWords[kind], how: text },
    })),
  ]
  return lines.sort((one, other) => one.seq - other.seq)
}

const rowHeight = 24

/** The timeline in words, for those who read it better so. */
export function TimelineTable(): JSX.Element {
  const lines = listLines()
  const start = timeline.value?.from ?? 0
  const { scroller, list, items } = useRows(lines.length, rowHeight)
  return (
    <>
      <div class="table-scroll" ref={scroller} tabIndex={0}>
        <div
          class="table"
          role="table"
          aria-label="Timeline"
          aria-rowcount={lines.length + 1}
          style={{ height: `${list.getTotalSize() + rowHeight}px` }}
        >
          <div role="row" class="line heads" aria-rowindex={1}>
            {['event', 'after', 'took', 'who', 'what', 'how it ended'].map((head) => (
              <span role="columnheader" key={head} class={head === 'after' || head === 'took' ? 'num' : ''}>
                {head}
              </span>
            ))}
          </div>
          {items.map(({ index, start: top }) => {
            const { seq, from, to, who, what, how } = lines[index]!
            return (
              <div
                role="row"
                class="line"
                key={index}
                aria-rowindex={index + 2}
                style={{ top: `${top + rowHeight}px` }}
              >
                <span role="cell">
                  <button type="button" class="quiet" onClick={() => goTo(seq)}>
                    {seq}
                  </button>
                </span>
                <span role="cell" class="num">
                  {formatDuration(from - start)}
                </span>
                <span role="cell" class="num">
                  {to === undefined ? 'goes on' : formatDuration(to - from)}
                </span>
                <span role="cell">{showHidden(who)}</span>
                <span role="cell">{what}</span>
                <span role="cell">{showHidden((how ?? '').replaceAll('_', ' '))}</span>
              </div>
            )
          })}
        </div>
      </div>
      <Same
        command={['show', 'LEDGER', runId.value ?? '', '--events']}
        path={`runs/${runId.value}/steps`}
        json={() => lines}
        markdown={() =>
          toMarkdownTable(
            ['event', 'after in ms', 'took in ms', 'who', 'what', 'how it ended'],
            lines.map(({ seq, from, to, who, what, how }) => [
              seq,
              from - start,
              to && to - from,
              who,
              what,
              how,
            ]),
          )
        }
      />
    </>
  )
}
