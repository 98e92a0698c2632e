import { signal, useComputed, useSignal } from '@preact/signals'
import type { JSX, TargetedPointerEvent } from 'preact'
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks'
import { goTo, lines, seq } from '../../state/open-run.ts'
import { go, route } from '../../state/route.ts'
import { rows as runRows } from '../../state/runs.ts'
import { source } from '../../state/source.ts'
import { childTimelines, childTrouble, keepTimeline, readChild, timeline } from '../../state/timeline.ts'
import { formatDuration, showHidden } from '../../ui/text.tsx'
import type { Span, Timeline as RunTimeline } from '../../worker/timeline.ts'
import { axisHeight, type Drawing, drawLanes, drawMap, prepareCanvas, toX, type Window } from './draw.ts'
import { Key } from './key.tsx'
import { type Palette, readPalette } from './palette.ts'
import { arrangeRows, pickRows, type Row } from './rows.ts'
import { describeSpan, TimelineTable } from './table.tsx'
import { makeTimeScale, type TimeScale } from './time-scale.ts'
import './timeline.css'

/** The part of the scale that is seen; all of it without one. */
const zoomed = signal<Window | undefined>(undefined)
const isTrueToScale = signal(false)
/** Whether the table stands in the place of the lanes. */
const isTable = signal(false)
const isFolded = signal(false)
/** Rows that are unfolded, by their keys. */
const unfolded = signal<ReadonlySet<string>>(new Set())
/** The time up to which a run that goes on is drawn. */
const now = signal(0)

/** The run over time: a lane for the model and for each call, with what was waited for. */
export function Timeline(): JSX.Element {
  useEffect(() => keepTimeline(), [])
  const run = route.value.run
  useEffect(() => {
    zoomed.value = undefined
    unfolded.value = new Set()
  }, [run])
  const isGoingOn = source.value.kind === 'server' && timeline.value?.isEnded === false
  useEffect(() => {
    now.value = isGoingOn ? Date.now() : 0
    if (!isGoingOn) return undefined
    const timer = setInterval(() => (now.value = Date.now()), 1_000)
    return () => clearInterval(timer)
  }, [isGoingOn])
  return (
    <section class="timeline" aria-label="Timeline">
      <div class="head">
        <button
          type="button"
          class="quiet fold"
          aria-expanded={!isFolded.value}
          onClick={() => (isFolded.value = !isFolded.value)}
        >
          <h2>{isFolded.value ? '▸' : '▾'} Timeline</h2>
        </button>
        {!isFolded.value && <Controls />}
      </div>
      {!isFolded.value && (isTable.value ? <TimelineTable /> : <Lanes />)}
      {childTrouble.value !== undefined && (
        <p class="notice bad" role="alert">
          {showHidden(childTrouble.value)}
        </p>
      )}
    </section>
  )
}

function Controls(): JSX.Element {
  return (
    <>
      {!isTable.value && <Key />}
      <span class="end">
        {!isTable.value && (
          <>
            <button type="button" class="quiet" aria-label="Zoom out" onClick={() => zoom(2)}>
              −
            </button>
            <button type="button" class="quiet" aria-label="Zoom in" onClick={() => zoom(0.5)}>
              +
            </button>
            <button
              type="button"
              class="quiet"
              disabled={zoomed.value === undefined}
              onClick={() => (zoomed.value = undefined)}
            >
              All
            </button>
            <button
              type="button"
              class="quiet"
              aria-pressed={isTrueToScale.value}
              title="Waits are drawn shorter than they were, until this is on"
              onClick={() => {
                zoomed.value = undefined
                isTrueToScale.value = !isTrueToScale.value
              }}
            >
              True to scale
            </button>
          </>
        )}
        <button
          type="button"
          class="quiet"
          aria-pressed={isTable.value}
          onClick={() => (isTable.value = !isTable.value)}
        >
          Table
        </button>
      </span>
    </>
  )
}

/** The timeline up to now, where the run goes on. One that no process drives waits for nobody since its last event. */
function extendToNow(made: RunTimeline, at: number): RunTimeline {
  if (at <= made.to) return made
  const isLeft =
    runRows.value.find(({ runId }) => runId === route.value.run)?.status === 'interrupted' &&
    made.waits.at(-1)?.to !== undefined
  const wait = { kind: 'nobody' as const, from: made.to, seq: lines.length }
  return { ...made, to: at, ...(isLeft && { waits: [...made.waits, wait] }) }
}

let scale: TimeScale | undefined

function getWindow(): Window {
  return zoomed.value ?? { low: 0, high: scale?.length ?? 1 }
}

/** Shows another part: `factor` times as long, around `centre`, or the place of the event that is looked at. */
function zoom(factor: number, centre?: number): void {
  if (scale === undefined) return
  const { low, high } = getWindow()
  const at = lines[seq.peek() - 1]?.at
  const cursor = at === undefined ? undefined : scale.toLength(at)
  const isSeen = cursor !== undefined && cursor >= low && cursor <= high
  const around = centre ?? (isSeen ? cursor : (low + high) / 2)
  show(around - (around - low) * factor, around + (high - around) * factor)
}

/** The shortest part that can be shown, in its lengths: milliseconds. */
const shortest = 10

function show(low: number, high: number): void {
  const all = scale?.length ?? 1
  const length = Math.max(Math.min(shortest, all), Math.min(all, high - low))
  const from = Math.max(0, Math.min(all - length, (low + high - length) / 2))
  zoomed.value = length >= all ? undefined : { low: from, high: from + length }
}

function pan(share: number): void {
  const { low, high } = getWindow()
  const by = (high - low) * share
  const all = scale?.length ?? 1
  const clamped = Math.max(-low, Math.min(all - high, by))
  if (zoomed.value) zoomed.value = { low: low + clamped, high: high + clamped }
}

/** The palette of the present scheme. */
function usePalette(element: { readonly current: HTMLElement | null }): Palette | undefined {
  const [palette, setPalette] = useState<Palette>()
  useLayoutEffect(() => {
    const read = (): void => setPalette(readPalette(element.current!))
    const scheme = matchMedia('(prefers-color-scheme: dark)')
    read()
    scheme.addEventListener('change', read)
    return () => scheme.removeEventListener('change', read)
  }, [])
  return palette
}

function useWidth(element: { readonly current: HTMLElement | null }): number {
  const [width, setWidth] = useState(0)
  useLayoutEffect(() => {
    const observer = new ResizeObserver(([entry]) => setWidth(Math.floor(entry!.contentRect.width)))
    observer.observe(element.current!)
    return () => observer.disconnect()
  }, [])
  return width
}

function Lanes(): JSX.Element {
  const frame = useRef<HTMLDivElement>(null)
  const area = useRef<HTMLDivElement>(null)
  const canvas = useRef<HTMLCanvasElement>(null)
  const map = useRef<HTMLCanvasElement>(null)
  const palette = usePalette(frame)
  const width = useWidth(area)
  const scrollTop = useSignal(0)
  const height = 176
  const shown = useComputed(() => timeline.value && extendToNow(timeline.value, now.value))
  const scaled = useComputed(() => {
    scale = shown.value && makeTimeScale(shown.value, isTrueToScale.value)
    return scale
  })
  const rows = useComputed(() =>
    shown.value && route.value.run !== undefined
      ? arrangeRows(route.value.run, shown.value, childTimelines.value, unfolded.value)
      : [],
  )
  const total = (rows.value.at(-1)?.top ?? 0) + (rows.value.at(-1)?.height ?? 0)
  const describe = (given: Window, drawnHeight: number): Drawing | undefined =>
    shown.value &&
    scaled.value &&
    palette &&
    (width > 0
      ? {
          ...{ timeline: shown.value, scale: scaled.value, rows: rows.value, palette },
          ...{ window: given, width, height: drawnHeight, scrollTop: scrollTop.value },
        }
      : undefined)
  const window = zoomed.value ?? { low: 0, high: scaled.value?.length ?? 1 }
  const drawing = describe(window, height)
  useLayoutEffect(() => {
    if (drawing && canvas.current) drawLanes(prepareCanvas(canvas.current, width, height), drawing)
  })
  const whole = describe({ low: 0, high: scaled.value?.length ?? 1 }, 32)
  useLayoutEffect(() => {
    if (whole && map.current) drawMap(prepareCanvas(map.current, width, 32), whole)
  }, [shown.value, scaled.value, palette, width])
  return (
    <div class="lanes" ref={frame}>
      <div class="corner soft">{shown.value ? formatDuration(shown.value.to - shown.value.from) : ''}</div>
      <MiniMap canvas={map} window={window} length={scaled.value?.length ?? 1} />
      <div
        class="scroll"
        tabIndex={0}
        role="group"
        aria-label="Lanes: plus and minus zoom, Shift with arrows moves, up and down go from part to part"
        style={{ height: `${height}px` }}
        onScroll={(event) => (scrollTop.value = event.currentTarget.scrollTop)}
        onKeyDown={(event) => handleKey(event, rows.value)}
      >
        <div class="content" style={{ height: `${Math.max(height, total + axisHeight)}px` }}>
          <div class="labels">
            {pickRows(rows.value, scrollTop.value - 48, scrollTop.value + height).map((row) => (
              <RowLabel key={row.key} row={row} />
            ))}
          </div>
          <div class="area" ref={area} style={{ height: `${height}px` }}>
            <canvas ref={canvas} style={{ width: `${width}px`, height: `${height}px` }} aria-hidden="true" />
            {drawing && <Cursor drawing={drawing} />}
            {drawing && <Pointer drawing={drawing} />}
          </div>
        </div>
      </div>
      <Spoken rows={rows.value} />
    </div>
  )
}

function RowLabel({ row }: { readonly row: Row }): JSX.Element {
  const { key, label, depth, fold, childRunId, top, height, lanes } = row
  const outcome = lanes.length === 1 ? lanes[0]!.outcome : undefined
  const isBad = outcome !== undefined && outcome !== 'success'
  const text = (
    <>
      <span class="name">{showHidden(label)}</span>
      {isBad && (
        <span class="bad" title={outcome.replaceAll('_', ' ')}>
          ✕
        </span>
      )}
    </>
  )
  const toggle = (): void => {
    const next = new Set(unfolded.value)
    if (!next.delete(key)) {
      next.add(key)
      if (childRunId !== undefined) void readChild(childRunId)
    }
    unfolded.value = next
  }
  const style = {
    top: `${axisHeight + top}px`,
    height: `${height}px`,
    paddingLeft: `${8 + depth * 12 + (fold ? 0 : 12)}px`,
  }
  if (fold === undefined) {
    return (
      <div class="row-label" style={style} title={showHidden(label)}>
        {text}
      </div>
    )
  }
  return (
    <button type="button" class="row-label" style={style} aria-expanded={fold === 'open'} onClick={toggle}>
      <span aria-hidden="true">{fold === 'open' ? '▾' : '▸'}</span>
      {text}
    </button>
  )
}

/** The line at the event that is looked at. */
function Cursor({ drawing }: { readonly drawing: Drawing }): JSX.Element | null {
  const at = lines[seq.value - 1]?.at
  if (at === undefined) return null
  const x = toX(drawing, at)
  if (x < -1 || x > drawing.width + 1) return null
  const place = Math.min(drawing.width - 2, Math.max(0, x - 1))
  return <div class="cursor" style={{ transform: `translateX(${place}px)` }} />
}

/** A span under the pointer, and its row. */
interface Hit {
  readonly span: Span
  readonly row: Row
}

function findHit(drawing: Drawing, x: number, y: number): Hit | undefined {
  const at = y - axisHeight + drawing.scrollTop
  const row = drawing.rows.find(({ top, height }) => at >= top && at < top + height)
  if (row === undefined || y < axisHeight) return undefined
  let best: Span | undefined
  let bestDistance = 5
  const step = (row.height - 8) / row.attempts
  for (const { spans } of row.lanes) {
    for (const span of spans) {
      const left = toX(drawing, span.from)
      const right = toX(drawing, span.to ?? drawing.timeline.to)
      const place = span.attempt === undefined ? undefined : Math.min(row.attempts, span.attempt) - 1
      const isBeside = place !== undefined && Math.floor((at - row.top - 4) / step) !== place
      const distance = Math.max(0, left - x, x - right) + (isBeside ? 1 : 0) + (right - left < 4 ? 0 : 0.5)
      if (distance >= bestDistance) continue
      best = span
      bestDistance = distance
    }
  }
  return best && { span: best, row }
}

/** Takes clicks, drags and the wheel, and tells what the pointer is on. */
function Pointer({ drawing }: { readonly drawing: Drawing }): JSX.Element {
  const [hover, setHover] = useState<{ readonly hit: Hit; readonly x: number; readonly y: number }>()
  const drag = useRef<{ x: number; moved: number }>(undefined)
  const area = useRef<HTMLDivElement>(null)
  const current = useRef(drawing)
  current.current = drawing
  useEffect(() => {
    // A wheel that zooms must not scroll the page, too: that takes a listener that is not passive.
    const handleWheel = (event: WheelEvent): void => {
      const { width, window } = current.current
      if (event.ctrlKey || event.metaKey) {
        event.preventDefault()
        const share = event.offsetX / width
        zoom(Math.exp(event.deltaY / 200), window.low + (window.high - window.low) * share)
      } else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
        event.preventDefault()
        pan((event.deltaX || event.deltaY) / width)
      }
    }
    const element = area.current!
    element.addEventListener('wheel', handleWheel, { passive: false })
    return () => element.removeEventListener('wheel', handleWheel)
  }, [])
  const move = (event: TargetedPointerEvent<HTMLDivElement>): void => {
    const { offsetX: x, offsetY: y } = event
    if (drag.current) {
      const by = drag.current.x - event.clientX
      drag.current.moved += Math.abs(by)
      drag.current.x = event.clientX
      pan(by / drawing.width)
      return
    }
    const hit = findHit(drawing, x, y)
    setHover(hit && { hit, x, y })
  }
  const select = (event: TargetedPointerEvent<HTMLDivElement>): void => {
    const moved = drag.current?.moved ?? 0
    drag.current = undefined
    if (moved > 4) return
    const hit = findHit(drawing, event.offsetX, event.offsetY)
    if (hit) return goToSpan(hit.row, hit.span)
    const { low, high } = drawing.window
    const at = drawing.scale.toTime(low + ((high - low) * event.offsetX) / drawing.width)
    goTo(findLastUpTo(at))
  }
  return (
    <>
      <div
        ref={area}
        class={hover ? 'pointer on-span' : 'pointer'}
        onPointerDown={(event) => {
          drag.current = { x: event.clientX, moved: 0 }
          event.currentTarget.setPointerCapture(event.pointerId)
        }}
        onPointerMove={move}
        onPointerUp={select}
        onPointerCancel={() => (drag.current = undefined)}
        onPointerLeave={() => setHover(undefined)}
      />
      {hover && (
        <div
          class="tip"
          style={
            hover.x > drawing.width / 2
              ? {
                  right: `${drawing.width - hover.x + 12}px`,
                  top: `${Math.min(hover.y, drawing.height - 48)}px`,
                }
              : { left: `${hover.x + 12}px`, top: `${Math.min(hover.y, drawing.height - 48)}px` }
          }
        >
          <b>{showHidden(hover.hit.row.label)}</b>
          <br />
          {describeSpan(hover.hit.span, drawing.timeline.to)}
        </div>
      )}
    </>
  )
}

/** Goes to the event that begins a span, in the run that it is of. */
function goToSpan(row: Row, span: Span): void {
  if (row.runId === route.value.run) goTo(span.seq)
  else go({ run: row.runId, at: span.seq, call: undefined, with: undefined })
}

/** The last event up to a time. */
function findLastUpTo(at: number): number {
  let low = 0
  let high = lines.length
  while (low < high) {
    const middle = (low + high) >> 1
    if (lines[middle]!.at <= at) low = middle + 1
    else high = middle
  }
  return Math.max(1, low)
}

/** The parts of the run itself, in the order of their events. */
function listSpans(rows: readonly Row[]): readonly Hit[] {
  return rows
    .filter(({ runId }) => runId === route.value.run)
    .flatMap((row) => row.lanes.flatMap(({ spans }) => spans.map((span) => ({ row, span }))))
    .sort((one, other) => one.span.seq - other.span.seq)
}

function handleKey(event: KeyboardEvent, rows: readonly Row[]): void {
  if (event.ctrlKey || event.metaKey || event.altKey) return
  const moves: Readonly<Record<string, () => void>> = {
    '+': () => zoom(0.5),
    '=': () => zoom(0.5),
    '-': () => zoom(2),
    '0': () => (zoomed.value = undefined),
    ArrowDown: () => step(rows, 1),
    ArrowUp: () => step(rows, -1),
    ...(event.shiftKey && { ArrowLeft: () => pan(-0.2), ArrowRight: () => pan(0.2) }),
  }
  const move = moves[event.key]
  if (move === undefined) return
  event.preventDefault()
  event.stopPropagation()
  move()
}

/** Goes to the next part, or the one before. */
function step(rows: readonly Row[], by: 1 | -1): void {
  const hits = listSpans(rows)
  const next =
    by === 1
      ? hits.find(({ span }) => span.seq > seq.value)
      : hits.findLast(({ span }) => span.seq < seq.value)
  if (next) goTo(next.span.seq)
}

/** Says which part begins at the event that is looked at. */
function Spoken({ rows }: { readonly rows: readonly Row[] }): JSX.Element {
  const words = useMemo(() => {
    const bySeq = new Map<number, Hit>()
    for (const hit of listSpans(rows)) bySeq.set(hit.span.seq, hit)
    return bySeq
  }, [rows])
  const here = words.get(seq.value)
  return (
    <p class="hidden-visually" role="status">
      {here && showHidden(`${here.row.label}: ${describeSpan(here.span)}`)}
    </p>
  )
}

/** The whole run, and the part of it that is seen; a drag moves that. */
function MiniMap({
  canvas,
  window,
  length,
}: {
  readonly canvas: { current: HTMLCanvasElement | null }
  readonly window: Window
  readonly length: number
}): JSX.Element {
  const moveTo = (event: TargetedPointerEvent<HTMLDivElement>): void => {
    if (event.buttons === 0) return
    const bounds = event.currentTarget.getBoundingClientRect()
    const centre = ((event.clientX - bounds.left) / bounds.width) * length
    const half = (window.high - window.low) / 2
    if (zoomed.value) show(centre - half, centre + half)
    else show(centre - length / 8, centre + length / 8)
  }
  return (
    <div
      class="map"
      aria-hidden="true"
      onPointerDown={(event) => {
        event.currentTarget.setPointerCapture(event.pointerId)
        moveTo(event)
      }}
      onPointerMove={moveTo}
    >
      <canvas ref={canvas} />
      <div
        class="seen"
        style={{
          left: `${(window.low / length) * 100}%`,
          width: `${((window.high - window.low) / length) * 100}%`,
        }}
      />
    </div>
  )
}
