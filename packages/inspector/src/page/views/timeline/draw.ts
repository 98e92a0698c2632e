import type { Span, Timeline, WaitKind } from '../../worker/timeline.ts'
import { formatDuration } from '../../ui/text.tsx'
import type { Palette } from './palette.ts'
import { maxStacked, pickRows, type Row } from './rows.ts'
import { listTicks, type TimeScale } from './time-scale.ts'

/** The part of a scale that is drawn, in its lengths. */
export interface Window {
  readonly low: number
  readonly high: number
}

/** What is drawn, and where. */
export interface Drawing {
  readonly timeline: Timeline
  readonly rows: readonly Row[]
  readonly scale: TimeScale
  readonly window: Window
  readonly width: number
  readonly height: number
  readonly scrollTop: number
  readonly palette: Palette
}

/** The height of the axis above the lanes, in pixels. */
export const axisHeight = 20

/** Makes a canvas as fine as the screen, and clears it. */
export function prepareCanvas(
  canvas: HTMLCanvasElement,
  width: number,
  height: number,
): CanvasRenderingContext2D {
  const ratio = devicePixelRatio
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio)
    canvas.height = Math.round(height * ratio)
  }
  const pen = canvas.getContext('2d')!
  pen.setTransform(ratio, 0, 0, ratio, 0, 0)
  pen.clearRect(0, 0, width, height)
  return pen
}

/** The place of a time on a drawing, in pixels. It may lie outside. */
export function toX(
  { scale, window, width }: Pick<Drawing, 'scale' | 'window' | 'width'>,
  at: number,
): number {
  return ((scale.toLength(at) - window.low) / (window.high - window.low)) * width
}

export function drawLanes(pen: CanvasRenderingContext2D, drawing: Drawing): void {
  const { rows, height, scrollTop } = drawing
  drawWaits(pen, drawing, axisHeight, height, 0.35)
  pen.save()
  pen.beginPath()
  pen.rect(0, axisHeight, drawing.width, height)
  pen.clip()
  for (const row of pickRows(rows, scrollTop, scrollTop + height)) {
    drawRow(pen, drawing, row, axisHeight + row.top - scrollTop)
  }
  pen.restore()
  drawAxis(pen, drawing)
}

/** The whole run, small: the model above, calls below, waits over both. */
export function drawMap(pen: CanvasRenderingContext2D, drawing: Drawing): void {
  const { timeline, height, palette } = drawing
  drawWaits(pen, drawing, 0, height, 0.7)
  const half = Math.floor(height / 2) - 4
  for (const lane of timeline.lanes) {
    pen.fillStyle = lane.kind === 'model' ? palette.model : palette.tool
    drawSpans(drawing, lane.spans, (span, x, width) => {
      if (span.kind !== 'model' && span.kind !== 'executed' && span.kind !== 'summary') return
      pen.fillStyle =
        span.failed === undefined
          ? lane.kind === 'model'
            ? palette.model
            : palette.tool
          : palette.failedEdge
      pen.fillRect(x, lane.kind === 'model' ? 4 : half + 4, width, half)
    })
  }
}

const edges = {
  people: 'peopleEdge',
  outside: 'outsideEdge',
  time: 'timeEdge',
  nobody: 'nobodyEdge',
  fork: 'line',
} as const satisfies Record<WaitKind, keyof Palette>

function drawWaits(
  pen: CanvasRenderingContext2D,
  drawing: Drawing,
  top: number,
  height: number,
  alpha: number,
): void {
  const { timeline, palette, width } = drawing
  for (const { kind, from, to = timeline.to } of timeline.waits) {
    const left = Math.max(0, toX(drawing, from))
    const right = Math.min(width, toX(drawing, to))
    if (right < 0 || left > width || right <= left) continue
    pen.globalAlpha = alpha
    pen.fillStyle = kind === 'fork' ? palette.line : palette[kind]
    pen.fillRect(left, top, Math.max(1, right - left), height - top)
    pen.globalAlpha = 1
    pen.fillStyle = palette[edges[kind]]
    pen.fillRect(left, Math.max(0, top - 4), Math.max(1, right - left), 4)
  }
}

function drawAxis(pen: CanvasRenderingContext2D, drawing: Drawing): void {
  const { scale, window, width, palette, timeline } = drawing
  pen.fillStyle = palette.line
  pen.fillRect(0, axisHeight - 1, width, 1)
  pen.font = '11px system-ui, sans-serif'
  pen.textBaseline = 'middle'
  const minLength = ((window.high - window.low) / width) * 80
  for (const { length, afterMs } of listTicks(scale, timeline.from, window.low, window.high, minLength)) {
    const x = ((length - window.low) / (window.high - window.low)) * width
    pen.fillStyle = palette.line
    pen.fillRect(Math.round(x), 0, 1, axisHeight - 4)
    pen.fillStyle = palette.soft
    if (x + 56 < width) pen.fillText(afterMs === 0 ? '0' : formatDuration(afterMs), Math.round(x) + 4, 8)
  }
  drawMarks(pen, drawing)
}

/** Take-overs are marked over all lanes, other things on the axis alone. */
function drawMarks(pen: CanvasRenderingContext2D, drawing: Drawing): void {
  const { timeline, height, width, palette } = drawing
  for (const { kind, at } of timeline.marks) {
    const x = Math.round(toX(drawing, at))
    if (x < -8 || x > width + 8) continue
    if (kind === 'take_over') {
      pen.fillStyle = palette.nobodyEdge
      for (let y = axisHeight; y < height; y += 8) pen.fillRect(x, y, 2, 4)
      drawTriangle(pen, x + 1, axisHeight - 8)
    } else if (kind === 'limit' || kind === 'cancel' || kind === 'guardrail') {
      pen.fillStyle = palette.failedEdge
      drawTriangle(pen, x, axisHeight - 8)
    } else if (kind === 'input' || kind === 'handoff') {
      pen.fillStyle = palette.model
      pen.beginPath()
      pen.arc(Math.max(4, x), axisHeight - 5, 3, 0, 7)
      pen.fill()
    }
  }
}

function drawTriangle(pen: CanvasRenderingContext2D, x: number, y: number): void {
  pen.beginPath()
  pen.moveTo(x - 5, y)
  pen.lineTo(x + 5, y)
  pen.lineTo(x, y + 8)
  pen.fill()
}

/** Calls back for each span that is seen, with its place; of those on the same pixel, for the first and for failures. */
function drawSpans(
  drawing: Drawing,
  spans: readonly Span[],
  draw: (span: Span, x: number, width: number) => void,
): void {
  const { timeline, width } = drawing
  let lastPixel = -1
  let lastKind: string | undefined
  for (const span of spans) {
    const left = toX(drawing, span.from)
    if (left > width) continue
    const right = toX(drawing, span.to ?? timeline.to)
    if (right < 0) continue
    const pixel = Math.floor(left)
    if (right - left < 1 && pixel === lastPixel && span.kind === lastKind && span.failed === undefined)
      continue
    lastPixel = pixel
    lastKind = span.kind
    const least = span.failed === undefined ? 1 : 3
    draw(span, Math.max(-4, left), Math.max(least, Math.min(width + 4, right) - Math.max(-4, left)))
  }
}

function drawRow(pen: CanvasRenderingContext2D, drawing: Drawing, row: Row, top: number): void {
  const inner = row.height - 8
  const step = inner / row.attempts
  for (const { spans } of row.lanes) {
    drawSpans(drawing, spans, (span, x, width) => {
      const place = Math.min(row.attempts, maxStacked, span.attempt ?? 1) - 1
      const isAttempt = span.attempt !== undefined && span.kind !== 'outside'
      const y = top + 4 + (isAttempt ? place * step : 0)
      const height = isAttempt ? step - (row.attempts > 1 ? 1 : 0) : inner
      drawSpan(pen, drawing.palette, span, x, y, width, height, (at) => toX(drawing, at))
    })
  }
}

function drawSpan(
  pen: CanvasRenderingContext2D,
  palette: Palette,
  span: Span,
  x: number,
  y: number,
  width: number,
  height: number,
  place: (at: number) => number,
): void {
  const fill = (style: string | CanvasPattern, edge?: string): void => {
    pen.fillStyle = style
    pen.beginPath()
    pen.roundRect(x, y, width, height, Math.min(2, width / 2))
    pen.fill()
    if (edge === undefined || width < 3) return
    pen.strokeStyle = edge
    pen.lineWidth = 1
    pen.strokeRect(x + 0.5, y + 0.5, width - 1, height - 1)
  }
  const thin = (style: string): void => {
    pen.fillStyle = style
    pen.fillRect(x, y + height / 2 - 2, width, 4)
  }
  switch (span.kind) {
    case 'requested':
      return thin(palette.modelSoft)
    case 'checked':
      return thin(palette.soft)
    case 'approval':
      return fill(palette.people, palette.peopleEdge)
    case 'outside':
      return fill(palette.outside, palette.outsideEdge)
    case 'retry':
      return fill(palette.time, palette.timeEdge)
    case 'nobody':
      return fill(palette.nobody, palette.nobodyEdge)
    case 'executed':
      if (span.failed === undefined) fill(palette.tool)
      else fill(palette.failed, palette.failedEdge)
      break
    case 'summary':
      fill(palette.modelSoft, palette.model)
      break
    case 'model': {
      if (span.failed !== undefined) {
        fill(palette.failed, palette.failedEdge)
        break
      }
      fill(palette.modelSoft, palette.model)
      if (span.answeredAt === undefined) break
      const begin = Math.max(x, place(span.answeredAt))
      pen.fillStyle = palette.model
      pen.fillRect(begin, y, Math.max(0, x + width - begin), height)
      width -= begin - x
      x = begin
    }
  }
  if (width > 64 && height >= 14) drawLabel(pen, palette, span, x, y, width, height)
}

function drawLabel(
  pen: CanvasRenderingContext2D,
  palette: Palette,
  span: Span,
  x: number,
  y: number,
  width: number,
  height: number,
): void {
  const length = span.to === undefined ? '' : formatDuration(span.to - span.from)
  const text = span.failed === undefined ? length : `${span.failed.replaceAll('_', ' ')} ${length}`
  pen.font = '11px system-ui, sans-serif'
  pen.textBaseline = 'middle'
  const needed = pen.measureText(text).width
  if (needed > width - 12) return
  const isOnColour =
    span.failed === undefined &&
    (span.kind === 'executed' || (span.kind === 'model' && span.answeredAt !== undefined))
  if (span.failed !== undefined) {
    pen.fillStyle = palette.ground
    pen.fillRect(x + 4, y + 1, needed + 8, height - 2)
  }
  pen.fillStyle = isOnColour ? palette.ground : palette.text
  pen.fillText(text, isOnColour ? x + width - needed - 8 : x + 8, y + height / 2 + 0.5)
}
