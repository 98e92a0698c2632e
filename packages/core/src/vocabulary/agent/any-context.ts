/**
 * The context of a run, where a type does not say which: agents and tools that need some context, and those that need
 * none, fit each other then. Only `any` fits both sides of a function's parameter.
 */
// oxlint-disable-next-line typescript/no-explicit-any -- see above; no value of this type is ever used
export type AnyContext = any
