import { useState } from 'preact/hooks'

/** A command on its way: whether it is sent, and why it was refused. */
export interface Sending {
  readonly isBusy: boolean
  readonly trouble: string | undefined
  /** Sends it, and calls `then` with the answer once the server has taken it. */
  readonly send: <Answer>(command: () => Promise<Answer>, then: (answer: Answer) => void) => void
}

export function useSending(): Sending {
  const [isBusy, setBusy] = useState(false)
  const [trouble, setTrouble] = useState<string | undefined>(undefined)
  return {
    isBusy,
    trouble,
    send(command, then) {
      setBusy(true)
      setTrouble(undefined)
      command()
        .then(then, (error: Error) => setTrouble(error.message))
        .finally(() => setBusy(false))
    },
  }
}
