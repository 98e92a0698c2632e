import type { JSX } from 'preact'
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'
import uPlot, { type AlignedData, type Options } from 'uplot'
import 'uplot/dist/uPlot.min.css'

/** Gives the colour that a variable of the style has now, as a canvas takes it. */
export type ReadColour = (name: string) => string

/** What a chart shows. `key` changes when another chart has to be made; new data alone needs none. */
export interface ChartPlan {
  readonly key: string
  readonly data: AlignedData
  readonly height: number
  /** The options, but for the size. */
  readonly make: (read: ReadColour) => Omit<Options, 'width' | 'height'>
}

/** A chart of uPlot in the colours of the present scheme, as wide as its place. `label` tells others what it shows. */
export function Chart({ label, plan }: { readonly label: string; readonly plan: ChartPlan }): JSX.Element {
  const place = useRef<HTMLDivElement>(null)
  const chart = useRef<uPlot>(undefined)
  const [width, setWidth] = useState(0)
  const scheme = useScheme()
  useLayoutEffect(() => {
    const observer = new ResizeObserver(([entry]) => setWidth(Math.floor(entry!.contentRect.width)))
    observer.observe(place.current!)
    return () => observer.disconnect()
  }, [])
  useEffect(() => {
    if (width === 0) return undefined
    const options = plan.make(makeReader(place.current!))
    const made = new uPlot({ ...options, width, height: plan.height }, plan.data, place.current!)
    chart.current = made
    return () => {
      chart.current = undefined
      made.destroy()
    }
  }, [plan.key, scheme, width > 0])
  useEffect(() => {
    if (width > 0) chart.current?.setSize({ width, height: plan.height })
  }, [width])
  useEffect(() => chart.current?.setData(plan.data), [plan.data])
  return (
    <div class="chart" ref={place} role="img" aria-label={label} style={{ height: `${plan.height}px` }} />
  )
}

function makeReader(element: HTMLElement): ReadColour {
  return (name) => {
    const probe = document.createElement('span')
    probe.style.color = `var(--${name})`
    element.append(probe)
    const { color } = getComputedStyle(probe)
    probe.remove()
    return color
  }
}

/** Whether the system asks for dark colours; what uses it is drawn anew when that changes. */
function useScheme(): boolean {
  const [isDark, setDark] = useState(() => matchMedia('(prefers-color-scheme: dark)').matches)
  useEffect(() => {
    const query = matchMedia('(prefers-color-scheme: dark)')
    const read = (): void => setDark(query.matches)
    query.addEventListener('change', read)
    return () => query.removeEventListener('change', read)
  }, [])
  return isDark
}

/** Axes and grid in quiet colours. */
export function makeAxis(read: ReadColour, more: Partial<uPlot.Axis> = {}): uPlot.Axis {
  return {
    stroke: read('text-soft'),
    font: '11px system-ui, sans-serif',
    grid: { stroke: read('line'), width: 1 },
    ticks: { show: false },
    gap: 4,
    ...more,
  }
}

/** A hatched fill, so that colour is not the only sign. */
export function makeHatch(colour: string, ground?: string): CanvasPattern | string {
  const canvas = document.createElement('canvas')
  const size = (canvas.width = canvas.height = Math.round(8 * devicePixelRatio))
  const pen = canvas.getContext('2d')!
  if (ground !== undefined) {
    pen.fillStyle = ground
    pen.fillRect(0, 0, size, size)
  }
  pen.strokeStyle = colour
  pen.lineWidth = devicePixelRatio
  for (const x of [-size, 0, size]) {
    pen.beginPath()
    pen.moveTo(x, size)
    pen.lineTo(x + size, 0)
    pen.stroke()
  }
  return pen.createPattern(canvas, 'repeat') ?? colour
}
