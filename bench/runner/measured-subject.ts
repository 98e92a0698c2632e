import type { Case } from '../cases/case.ts'

/** A subject, and the packages on which it is measured. */
export interface MeasuredSubject {
  /** What it is called in tables. */
  readonly name: string
  /** What its case calls it. */
  readonly subject: string
  /** Whether it loads the packages of another commit. */
  readonly isBefore: boolean
}

/** Which subjects of a case are asked for. */
export interface Choice {
  /** Without the peers. */
  readonly own: boolean
  /** Whether the packages of another commit are measured, too. */
  readonly before: boolean
}

/** The subjects of a case: each of ours is followed by what it was before. */
export function subjectsOf({ own, floors = [], peers }: Case, choice: Choice): readonly MeasuredSubject[] {
  const others = [...floors, ...(choice.own ? [] : peers)]
  return [
    ...own.flatMap((subject) => [today(subject), ...(choice.before ? [before(subject)] : [])]),
    ...others.map(today),
  ]
}

function today(subject: string): MeasuredSubject {
  return { name: subject, subject, isBefore: false }
}

function before(subject: string): MeasuredSubject {
  return { name: `before-${subject.replace(/^tallystick-/, '')}`, subject, isBefore: true }
}
