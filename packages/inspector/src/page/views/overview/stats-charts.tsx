import type { JSX } from 'preact'
import { useMemo } from 'preact/hooks'
import uPlot from 'uplot'
import type { StatsBucket } from '../../../api.ts'
import { getBucketMs, range } from '../../state/overview.ts'
import { Chart, type ChartPlan, makeAxis, makeHatch, type ReadColour } from '../../ui/chart.tsx'
import { formatCost, formatDuration } from '../../ui/text.tsx'
import { showRuns } from '../runs/filters.tsx'

interface Buckets {
  readonly buckets: readonly StatsBucket[]
}

const height = 160

/** Shows the runs that began in a part of time. */
export function openBucket(at: number): void {
  showRuns({ since: at, until: at + getBucketMs(range.peek()) })
}

/** How many runs began, by how they stand now. The parts are stacked: failed below, then waiting, then the rest. */
export function RunsChart({ buckets }: Buckets): JSX.Element {
  const data = useMemo(
    (): uPlot.AlignedData => [
      buckets.map(({ at }) => at),
      buckets.map(({ runs }) => runs),
      buckets.map(({ failed, suspended }) => failed + suspended || null),
      buckets.map(({ failed }) => failed || null),
    ],
    [buckets],
  )
  const bars = uPlot.paths.bars!({ size: [0.7, 32] })
  const count = (_: uPlot, value: number | null): string => (value ?? 0).toLocaleString('en')
  const plan = useMemo(
    (): ChartPlan => ({
      ...{ key: `runs ${range.value.id}`, data, height },
      make: (read) => ({
        ...makeOptions(read, (ticks) => ticks.map((tick) => (Number.isInteger(tick) ? String(tick) : ''))),
        series: [
          {},
          {
            label: 'all',
            value: count,
            paths: bars,
            fill: read('accent'),
            width: 0,
            points: { show: false },
          },
          {
            ...{ label: 'waiting', paths: bars, fill: read('wait'), width: 0, points: { show: false } },
            value: (chart, _value, _series, index) =>
              index === null ? '0' : String((chart.data[2]![index] ?? 0) - (chart.data[3]![index] ?? 0)),
          },
          {
            ...{ label: 'failed', value: count, paths: bars, width: 1, points: { show: false } },
            ...{ stroke: read('bad'), fill: makeHatch(read('bad'), read('bad-soft')) },
          },
        ],
      }),
    }),
    [data],
  )
  const total = buckets.reduce((sum, { runs }) => sum + runs, 0)
  const failed = buckets.reduce((sum, each) => sum + each.failed, 0)
  return <Chart plan={plan} label={`${total} runs in ${range.value.words}, ${failed} of them failed`} />
}

export function CostChart({ buckets }: Buckets): JSX.Element {
  const data = useMemo(
    (): uPlot.AlignedData => [buckets.map(({ at }) => at), buckets.map(({ costUsd }) => costUsd)],
    [buckets],
  )
  const plan = useMemo(
    (): ChartPlan => ({
      ...{ key: `cost ${range.value.id}`, data, height },
      make: (read) => ({
        ...makeOptions(read, (ticks) => ticks.map(formatCost)),
        series: [
          {},
          {
            ...{ label: 'cost', paths: uPlot.paths.bars!({ size: [0.7, 32] }), width: 0 },
            ...{ fill: read('accent'), points: { show: false } },
            value: (_, value) => formatCost(value ?? 0),
          },
        ],
      }),
    }),
    [data],
  )
  const total = buckets.reduce((sum, { costUsd }) => sum + costUsd, 0)
  return <Chart plan={plan} label={`${formatCost(total)} in ${range.value.words}`} />
}

/** How long runs took: two lines, the higher one dashed. */
export function DurationChart({ buckets }: Buckets): JSX.Element {
  const data = useMemo(
    (): uPlot.AlignedData => [
      buckets.map(({ at }) => at),
      buckets.map(({ p50Ms }) => p50Ms ?? null),
      buckets.map(({ p95Ms }) => p95Ms ?? null),
    ],
    [buckets],
  )
  const value = (_: uPlot, ms: number | null): string => (ms === null ? '–' : formatDuration(ms))
  const plan = useMemo(
    (): ChartPlan => ({
      ...{ key: `duration ${range.value.id}`, data, height },
      make: (read) => ({
        ...makeOptions(read, (ticks) => ticks.map(formatDuration)),
        series: [
          {},
          { label: 'p50', value, stroke: read('accent'), width: 2, spanGaps: true, points: { size: 5 } },
          {
            ...{ label: 'p95', value, stroke: read('wait'), width: 2, spanGaps: true },
            ...{ dash: [4, 4], points: { size: 5 } },
          },
        ],
      }),
    }),
    [data],
  )
  return <Chart plan={plan} label={`How long runs took, in ${range.value.words}`} />
}

function makeOptions(
  read: ReadColour,
  values: (ticks: readonly number[]) => string[],
): Omit<uPlot.Options, 'width' | 'height' | 'series'> {
  const bucketMs = getBucketMs(range.peek())
  return {
    ms: 1,
    padding: [8, 8, 0, 0],
    legend: { show: true },
    cursor: {
      y: false,
      drag: { x: false, y: false },
      points: { show: false },
      bind: {
        click: (chart) => () => {
          const { idx } = chart.cursor
          if (typeof idx === 'number') openBucket(chart.data[0][idx]!)
          return null
        },
      },
    },
    scales: {
      // Half a bar more on both sides, so that the first and the last are whole.
      x: { time: true, range: (_, min, max) => [min - bucketMs / 2, max + bucketMs / 2] },
      y: { range: (_, __, max) => [0, max > 0 ? max * 1.1 : 1] },
    },
    axes: [
      makeAxis(read, { size: 36, grid: { show: false } }),
      makeAxis(read, { size: 64, values: (_, ticks) => values(ticks), space: 32 }),
    ],
  }
}
