import type { RuntimeEvent } from '@tallystick/core'
import type { JSX } from 'preact'
import type { ReplayAnswer } from '../../api.ts'
import { goTo } from '../state/open-run.ts'
import { LineDiff } from '../ui/line-diff.tsx'
import { Same } from '../ui/same.tsx'
import { LongText, showHidden } from '../ui/text.tsx'

/** More of a value is not laid out. */
const maxText = 20_000

/** Where a run that was driven again differs from its record, with both events. */
export function ReplayReport({
  report,
  onGo,
}: {
  readonly report: ReplayAnswer
  /** Called when the reader goes to the event. */
  readonly onGo: () => void
}): JSX.Element {
  const { events, divergence, runId: id } = report
  return (
    <>
      <p role="status">
        {divergence === undefined ? (
          <span class="badge good">✓ all {events.toLocaleString()} events happened again</span>
        ) : (
          <span class="badge bad">≠ differs at event {divergence.seq}</span>
        )}{' '}
        {divergence && (
          <button
            type="button"
            class="quiet"
            onClick={() => {
              onGo()
              goTo(divergence.seq)
            }}
          >
            go there
          </button>
        )}
      </p>
      {divergence?.differences.slice(0, 50).map(({ path, recorded, happened }) => (
        <div key={path}>
          <code class="soft">{showHidden(path)}</code>
          <LineDiff before={toText(recorded).slice(0, maxText)} after={toText(happened).slice(0, maxText)} />
        </div>
      ))}
      {divergence && (
        <details>
          <summary>Both events: recorded, and as it happened</summary>
          <div class="pair-head">
            <Payload event={divergence.recorded} />
            <Payload event={divergence.happened} />
          </div>
        </details>
      )}
      <Same
        command={['replay', 'LEDGER', id]}
        json={() => report}
        markdown={() =>
          divergence === undefined
            ? `Run ${id}: all ${events} events happened again.`
            : `Run ${id} differs from its record at event ${divergence.seq}: ${divergence.differences.map(({ path }) => path).join(', ')}.`
        }
      />
    </>
  )
}

function Payload({ event }: { readonly event: RuntimeEvent | undefined }): JSX.Element {
  if (event === undefined) return <p class="soft">None.</p>
  const text = toText(event)
  return <LongText text={text.slice(0, maxText)} length={text.length} />
}

function toText(value: unknown): string {
  if (value === undefined) return ''
  return typeof value === 'string' ? value : JSON.stringify(value, undefined, 2)
}
