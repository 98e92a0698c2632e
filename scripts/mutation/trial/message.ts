/** What a process is asked: to run test files, in this order and until one fails, with the text of one module replaced. */
export interface Trial {
  /** Absolute paths. */
  readonly tests: readonly string[]
  /** Absolute path; nothing is replaced where it is left out. */
  readonly path?: string
  readonly text?: string
}

/** What a process reports: that another test has ended, how long a file took, or how the trial ended. */
export type Report =
  | { readonly kind: 'ready' }
  | { readonly kind: 'progress' }
  | { readonly kind: 'took'; readonly test: string; readonly milliseconds: number }
  | { readonly kind: 'ended'; readonly outcome: Outcome }

/** How the tests ended. */
export type Outcome =
  | { readonly kind: 'passed'; readonly isLoaded: boolean }
  | { readonly kind: 'failed'; readonly test: string; readonly how: string }
  | { readonly kind: 'hung'; readonly how: string }
