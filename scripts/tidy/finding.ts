/** A committed text file. `path` is relative to the repository's root, with forward slashes. */
export interface SourceFile {
  readonly path: string
  readonly text: string
}

/** What a rule says about a place in a file. Errors fail the run, warnings are shown. */
export interface Finding {
  readonly rule: string
  readonly level: 'error' | 'warning'
  readonly path: string
  /** Counted from 1. */
  readonly line: number
  readonly message: string
}

/** A rule looks at one file at a time and knows nothing of the others. */
export type Rule = (file: SourceFile) => readonly Finding[]

/** The line, counted from 1, that a position in a text is on. */
export function lineAt(text: string, position: number): number {
  let line = 1
  for (
    let index = text.indexOf('\n');
    index !== -1 && index < position;
    index = text.indexOf('\n', index + 1)
  ) {
    line++
  }
  return line
}

/** Whether a file was recorded, so that it may not be edited to please a rule. */
export function isRecording(path: string): boolean {
  return /(^|\/)(fixtures|golden)\//.test(path)
}
