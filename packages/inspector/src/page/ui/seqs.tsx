import type { JSX } from 'preact'
import { goTo } from '../state/open-run.ts'
import { go } from '../state/route.ts'

/** So many numbers are shown at most; a reply may come from hundreds of deltas. */
const shown = 4

/** Goes to an event, and shows what it says. */
function showEvent(seq: number): void {
  goTo(seq)
  go({ right: 'event' })
}

/** Numbers of events as buttons that show them. */
export function Seqs({ seqs }: { readonly seqs: readonly number[] }): JSX.Element {
  const [first, last] = [seqs[0], seqs.at(-1)]
  const some = seqs.length <= shown ? seqs : [first!, last!]
  return (
    <span class="seqs">
      {some.map((seq, index) => (
        <span key={seq}>
          {index === 1 && seqs.length > shown && <span class="faint">…</span>}
          <button
            type="button"
            class="quiet"
            title={`Show event ${seq}`}
            aria-label={`Show event ${seq}`}
            onClick={() => showEvent(seq)}
          >
            {seq}
          </button>
        </span>
      ))}
    </span>
  )
}
