/**
 * An oxlint rule against reading the host's clock through `Date`: `new Date()` and `Date()` without arguments.
 * The compiler cannot see it, because `Date` itself belongs to the language; `Date.now` is banned beside it by
 * `no-restricted-properties`.
 */
interface CallLike {
  readonly callee: { readonly type: string; readonly name?: string }
  readonly arguments: readonly unknown[]
}

interface RuleContext {
  report(finding: { readonly node: CallLike; readonly message: string }): void
}

type Visitor = Readonly<Record<'NewExpression' | 'CallExpression', (node: CallLike) => void>>

const message =
  'Reads the host clock. Take the time from the Clock port, so that a replay sees what the run saw.'

function createVisitor(context: RuleContext): Visitor {
  const readsClock = (node: CallLike, whatever: boolean): void => {
    if (node.callee.type !== 'Identifier' || node.callee.name !== 'Date') return
    if (whatever || node.arguments.length === 0) context.report({ node, message })
  }
  return {
    NewExpression: (node) => readsClock(node, false),
    // Called as a function, Date ignores its arguments and answers the present.
    CallExpression: (node) => readsClock(node, true),
  }
}

export default {
  meta: { name: 'tallystick' },
  rules: { 'no-ambient-date': { create: createVisitor } },
}
