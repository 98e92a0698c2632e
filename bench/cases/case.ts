/** The numbers that a case is run with, such as `{ turns: 100 }`. */
export type Params = Readonly<Record<string, number>>

/** One measurement that a child process is asked for. */
export interface Trial {
  /** The name of the case. */
  readonly of: string
  readonly subject: string
  readonly params: Params
  /** An empty folder of its own. */
  readonly folder: string
  /** True to check the results further than a measurement does, with tiny numbers. */
  readonly smoke: boolean
  /** The most time that the measured part may take, in milliseconds. */
  readonly limitMs: number
  readonly postgres?: string | undefined
}

/** The figures of one trial. */
export interface Measurement {
  /** The number of the case's units that were done. */
  readonly units: number
  readonly wallMs: number
  /** CPU time of the process, its garbage collector and compiler threads included. */
  readonly cpuMs: number
  /** The most memory of the measured process, in MiB, where it is not the process that measures. */
  readonly peakMiB?: number
  /** Further figures by their name, with the unit in the name. */
  readonly facts?: Readonly<Record<string, number>>
}

export interface Case {
  readonly name: string
  /** One sentence about what the case measures. */
  readonly what: string
  /** Times are divided by the number of these: `turn`, `delta` … */
  readonly unit: string
  readonly params: readonly Params[]
  /** Tiny numbers. */
  readonly smokeParams: readonly Params[]
  /** Subjects of this repository; the first is what the others are compared with. */
  readonly own: readonly string[]
  /** Subjects that need neither this repository nor a peer: the least that the work costs. */
  readonly floors?: readonly string[]
  /** Subjects that have to be installed first. */
  readonly peers: readonly string[]
  /** True if its subjects do the same work, so that their figures can be compared. */
  readonly isComparison: boolean
  /** The subjects that need a Postgres server. */
  readonly onPostgres?: readonly string[]
  /** Measures, and throws where the result is not right. */
  measure(trial: Trial): Promise<Measurement>
}

/** Formats the numbers of a case: `1,000 turns`. */
export function paramsText(params: Params): string {
  return Object.entries(params)
    .map(([name, value]) => `${value.toLocaleString('en')} ${name}`)
    .join(', ')
}
