import { signal } from '@preact/signals'
import type { JSX } from 'preact'
import { useMemo, useRef } from 'preact/hooks'
import uPlot from 'uplot'
import { goTo, lastSeq, seq } from '../../state/open-run.ts'
import { Chart, type ChartPlan, makeAxis, makeHatch, type ReadColour } from '../../ui/chart.tsx'
import type { Budget } from '../../worker/money.ts'
import { formatAmount, nameField } from './amounts.ts'

/** The budget that is drawn; the first with a limit, until one is chosen. */
const chosen = signal<Budget['field'] | undefined>(undefined)
/** More points than these are not told apart on a screen. */
const maxPoints = 1_000

/** A budget over the events of the run: what is left of its limit, or what was spent where it has none. */
export function BurnDown({ budgets }: { readonly budgets: readonly Budget[] }): JSX.Element | null {
  const drawn = budgets.filter(({ seqs }) => seqs.length > 1)
  const limited = drawn.filter(isLimited)
  const usual = limited.find(({ field }) => field === 'costUsd') ?? limited[0] ?? drawn[0]
  const budget = drawn.find(({ field }) => field === chosen.value) ?? usual
  if (budget === undefined) return null
  return (
    <div class="section">
      <div class="heading">
        <h3>{isLimited(budget) ? 'Left of the budget' : 'Spent'}</h3>
        <select
          aria-label="Budget"
          value={budget.field}
          onChange={(event) => (chosen.value = event.currentTarget.value as Budget['field'])}
        >
          {drawn.map(({ field }) => (
            <option key={field} value={field}>
              {nameField(field)}
            </option>
          ))}
        </select>
      </div>
      <BurnDownChart budget={budget} />
      <p class="soft">
        {isLimited(budget)
          ? 'The line is what is left, the hatched part what calls and child runs under way may still use.'
          : 'This budget has no limit.'}
      </p>
    </div>
  )
}

function isLimited({ max }: Budget): boolean {
  return max.at(-1)! >= 0
}

function BurnDownChart({ budget }: { readonly budget: Budget }): JSX.Element {
  const last = lastSeq.value
  const limited = isLimited(budget)
  const data = useMemo(() => makeData(budget, last, limited), [budget, last, limited])
  const plan = useMemo(
    (): ChartPlan => ({
      key: `${budget.field} ${limited}`,
      data,
      height: 144,
      make: (read) => makeOptions(read, budget.field, limited),
    }),
    [budget.field, limited, data],
  )
  const place = useRef<HTMLDivElement>(null)
  const share = last > 1 ? (seq.value - 1) / (last - 1) : 1
  const words = limited ? 'what is left' : 'what was spent'
  return (
    <div class="burn-down" ref={place}>
      <Chart plan={plan} label={`${nameField(budget.field)}: ${words} over ${last} events`} />
      <div class="now" style={{ left: `calc(64px + (100% - 72px) * ${share})` }} aria-hidden="true" />
    </div>
  )
}

/** What is left of a budget, or what was spent of it; and the same without what is granted. */
function makeData(
  { seqs, spent, granted, max }: Budget,
  last: number,
  limited: boolean,
): [number[], number[], number[]] {
  const data: [number[], number[], number[]] = [[], [], []]
  const step = Math.ceil(seqs.length / maxPoints)
  const add = (seq: number, row: number): void => {
    const value = limited
      ? Math.max(0, (max[row]! >= 0 ? max[row]! : spent[row]!) - spent[row]!)
      : spent[row]!
    data[0].push(seq)
    data[1].push(value)
    data[2].push(limited ? Math.max(0, value - granted[row]!) : value)
  }
  for (let row = 0; row < seqs.length; row += step) add(seqs[row]!, row)
  const end = seqs.length - 1
  if (end >= 0) add(Math.max(last, seqs[end]!), end)
  return data
}

function makeOptions(
  read: ReadColour,
  field: Budget['field'],
  limited: boolean,
): Omit<uPlot.Options, 'width' | 'height'> {
  const stepped = uPlot.paths.stepped!({ align: 1 })
  const accent = read('accent')
  return {
    padding: [8, 8, 0, 0],
    legend: { show: false },
    cursor: {
      y: false,
      points: { show: false },
      drag: { x: false, y: false },
      bind: {
        click: (chart) => () => {
          const at = chart.posToVal(chart.cursor.left ?? 0, 'x')
          goTo(Math.round(at))
          return null
        },
      },
    },
    scales: {
      x: { time: false, range: (_, min, max) => [Math.min(1, min), Math.max(2, max)] },
      y: { range: (_, __, max) => [0, max > 0 ? max * 1.05 : 1] },
    },
    axes: [
      makeAxis(read, { size: 24, values: (_, ticks) => ticks.map((tick) => tick.toLocaleString('en')) }),
      makeAxis(read, { size: 64, values: (_, ticks) => ticks.map((tick) => formatAmount(field, tick)) }),
    ],
    series: [
      {},
      { paths: stepped, stroke: accent, width: 1.5, points: { show: false } },
      {
        paths: stepped,
        stroke: limited ? read('text-soft') : accent,
        ...(limited && { dash: [4, 4] }),
        width: 1,
        fill: read('accent-soft'),
        points: { show: false },
      },
    ],
    ...(limited && { bands: [{ series: [1, 2], fill: makeHatch(accent) }] }),
  }
}
