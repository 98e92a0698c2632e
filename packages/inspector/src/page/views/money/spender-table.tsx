import type { JSX } from 'preact'
import { goTo, seq } from '../../state/open-run.ts'
import { formatCost, showHidden } from '../../ui/text.tsx'
import { useRows } from '../../ui/virtual-list.tsx'
import type { Spender } from '../../worker/money.ts'
import { computeCachedShare, formatTokens } from './amounts.ts'
import { Estimate } from './estimate.tsx'

const rowHeight = 28
const kinds: Readonly<Record<Spender['kind'], string>> = {
  turn: '',
  summary: 'summary',
  tool: 'model call of a tool',
  child: 'child run',
}

/** Tokens and cost of each turn, and of what was called beside turns. */
export function SpenderTable({ spenders }: { readonly spenders: readonly Spender[] }): JSX.Element {
  const { scroller, list, items } = useRows(spenders.length, rowHeight)
  const most = spenders.reduce((max, { costUsd = 0 }) => Math.max(max, costUsd), 0)
  const shown = Math.min(12, spenders.length) * rowHeight + rowHeight
  return (
    <div class="section">
      <h3>By turn</h3>
      <div class="spenders" ref={scroller} tabIndex={0} style={{ height: `${shown}px` }}>
        <div
          role="table"
          aria-label="Tokens and cost of each turn"
          aria-rowcount={spenders.length + 1}
          style={{ height: `${list.getTotalSize() + rowHeight}px` }}
        >
          <div role="row" class="spender heads" aria-rowindex={1}>
            {['turn', 'who', 'input', 'cached', 'output', 'cost'].map((head) => (
              <span role="columnheader" key={head} class={head === 'turn' || head === 'who' ? '' : 'num'}>
                {head}
              </span>
            ))}
          </div>
          {items.map(({ index, start }) => (
            <Row key={index} spender={spenders[index]!} index={index} top={start + rowHeight} most={most} />
          ))}
        </div>
      </div>
    </div>
  )
}

function Row({
  spender,
  index,
  top,
  most,
}: {
  readonly spender: Spender
  readonly index: number
  readonly top: number
  readonly most: number
}): JSX.Element {
  const { kind, turn, name, attempts, usage, costUsd, estimated } = spender
  const cached = computeCachedShare(spender)
  const about = (fields: readonly string[]): JSX.Element | false =>
    estimated.some((each) => fields.includes(each) || each === 'all' || each === 'interrupted') && (
      <Estimate why={`Estimated: ${estimated.join(', ')}`} />
    )
  const details = [kinds[kind], attempts > 1 && `${attempts} attempts`].filter(Boolean).join(', ')
  return (
    <div
      role="row"
      class={spender.seq > seq.value ? 'spender later' : 'spender'}
      aria-rowindex={index + 2}
      style={{ top: `${top}px` }}
    >
      <span role="cell">
        <button
          type="button"
          class="quiet"
          title={`Go to event ${spender.seq}`}
          onClick={() => goTo(spender.seq)}
        >
          {turn}
        </button>
      </span>
      <span role="cell" title={showHidden(name)}>
        {showHidden(name)} {details && <span class="soft">{details}</span>}
      </span>
      <span role="cell" class="num">
        {about(['inputTokens'])}
        {formatTokens(usage.inputTokens ?? 0)}
      </span>
      <span role="cell" class="num">
        {cached === undefined ? <span class="faint">–</span> : `${Math.round(cached * 100)}%`}
      </span>
      <span role="cell" class="num">
        {about(['outputTokens'])}
        {formatTokens(usage.outputTokens ?? 0)}
      </span>
      <span role="cell" class="num cost">
        <span
          class="bar"
          aria-hidden="true"
          style={{ width: `${most > 0 ? ((costUsd ?? 0) / most) * 100 : 0}%` }}
        />
        <span>
          {about(['inputTokens', 'outputTokens', 'webSearches'])}
          {costUsd === undefined ? '–' : formatCost(costUsd)}
        </span>
      </span>
    </div>
  )
}
