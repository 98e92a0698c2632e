/** A vendor's reason for a reply that its model refused to write, or to continue. */
export interface ModelRefusal {
  /** Why, in the vendor's words. */
  readonly reason?: string
  /** The vendor asks to leave the refused turn out of later requests: with it they would be refused as well. */
  readonly leaveOut?: true
  /** The vendor advises to ask another model. */
  readonly askAnother?: true
}

/** What follows a refusal. Default of each field: as the vendor advises. */
export interface RefusalPolicy {
  /**
   * Whether later runs of the session see the refused turn. `leave_out` records its removal; tools that ran meanwhile
   * stay known by name and outcome.
   */
  readonly history?: 'keep' | 'leave_out' | undefined
  /** Whether the next of the agent's fallbacks is asked instead, as long as there is one. */
  readonly fallback?: boolean | undefined
}
