import { useEffect, useRef, useState } from 'preact/hooks'

/** What was read, for which key, or why it could not be. */
export interface ReadState<Value> {
  readonly value?: Value
  readonly error?: string
  /** The value is of an earlier key: the next one is being read. */
  readonly isOld: boolean
}

/**
 * Reads a value whenever the key changes, one at a time: keys that have passed in between are left out. The value before stays until
 * the next one is there, so that a view does not jump. `undefined` as a key reads nothing.
 */
export function useRead<Value>(key: string | undefined, read: () => Promise<Value>): ReadState<Value> {
  const [found, setFound] = useState<{
    readonly key?: string
    readonly value?: Value
    readonly error?: string
  }>({})
  const wanted = useRef({ key, read })
  wanted.current = { key, read }
  const isBusy = useRef(false)
  const isGone = useRef(false)
  useEffect(() => {
    isGone.current = false
    return () => {
      isGone.current = true
    }
  }, [])
  useEffect(() => {
    if (isBusy.current) return
    isBusy.current = true
    void readUntilCurrent().finally(() => (isBusy.current = false))
  }, [key])
  async function readUntilCurrent(): Promise<void> {
    for (let last: string | undefined; wanted.current.key !== last && !isGone.current;) {
      const { key: next, read: readNext } = wanted.current
      last = next
      if (next === undefined) continue
      const answer = await readNext().then(
        (value) => ({ key: next, value }),
        (error: Error) => ({ key: next, error: error.message }),
      )
      if (!isGone.current) setFound(answer)
    }
  }
  const { key: of, ...answer } = found
  return { ...answer, isOld: of !== key }
}
