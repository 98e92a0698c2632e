import type { Lane, Timeline } from '../../worker/timeline.ts'

/** A line of the timeline: a lane, or all calls of a tool. */
export interface Row {
  readonly key: string
  /** The run whose events its spans name. */
  readonly runId: string
  readonly label: string
  readonly depth: number
  readonly lanes: readonly Lane[]
  /** The most attempts of one call. */
  readonly attempts: number
  readonly top: number
  readonly height: number
  /** Present if there is something to unfold: the calls of a tool, or a child run. */
  readonly fold?: 'open' | 'closed'
  readonly childRunId?: string
}

/** With more calls than these, those of one tool are one row until it is unfolded. */
const maxLanes = 12
/** Attempts that are drawn above each other; later ones share the last place. */
export const maxStacked = 4

/** Puts the lanes of a run, and those of its unfolded child runs, below each other. */
export function arrangeRows(
  runId: string,
  timeline: Timeline,
  children: ReadonlyMap<string, Timeline>,
  open: ReadonlySet<string>,
): readonly Row[] {
  const rows: Row[] = []
  let top = 0
  const add = (row: Omit<Row, 'top' | 'height' | 'attempts'>): void => {
    const attempts = Math.min(maxStacked, Math.max(1, ...row.lanes.slice(0, 1_000).map((l) => l.attempts)))
    const height = Math.max(24, 8 + 8 * attempts)
    rows.push({ ...row, attempts, top, height })
    top += height
  }
  const addLane = (of: string, lane: Lane, depth: number): void => {
    const { childRunId, name: label } = lane
    const key = `${of}/${lane.id}`
    const isOpen = childRunId !== undefined && open.has(key)
    add({
      ...{ key, runId: of, label, depth, lanes: [lane] },
      ...(childRunId !== undefined && { childRunId, fold: isOpen ? 'open' : 'closed' }),
    })
    const child = isOpen ? children.get(childRunId) : undefined
    if (child && depth < 8) addRun(childRunId!, child, depth + 1)
  }
  const addRun = (of: string, { lanes }: Timeline, depth: number): void => {
    const calls = lanes.filter(({ kind }) => kind === 'call')
    for (const lane of lanes) if (lane.kind === 'model') addLane(of, lane, depth)
    if (calls.length <= maxLanes) return calls.forEach((lane) => addLane(of, lane, depth))
    for (const [name, ofTool] of Map.groupBy(calls, (lane) => lane.name)) {
      if (ofTool.length === 1) {
        addLane(of, ofTool[0]!, depth)
        continue
      }
      const key = `${of}/tool/${name}`
      const isOpen = open.has(key)
      const label = `${name} ×${ofTool.length}`
      add({ key, runId: of, label, depth, lanes: ofTool, fold: isOpen ? 'open' : 'closed' })
      if (isOpen) for (const lane of ofTool) addLane(of, lane, depth + 1)
    }
  }
  addRun(runId, timeline, 0)
  return rows
}

/** The rows that a window shows. */
export function pickRows(rows: readonly Row[], from: number, to: number): readonly Row[] {
  return rows.filter(({ top, height }) => top + height > from && top < to)
}
