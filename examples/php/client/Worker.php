<?php

declare(strict_types=1);

require_once __DIR__ . '/Tallystick.php';

/**
 * Does in PHP what the calls of a run ask for. It keeps nothing: what a run waits for is in the ledger, so any worker can
 * continue where another died.
 */
final class Worker
{
    /**
     * @param array<string, callable(array, string): string> $tools by name; each gets the input and the id of the call, under
     *     which a tool that changes something does its work once
     * @param callable(array): bool $decide whether a call that asks for leave may run
     */
    public function __construct(
        private readonly Tallystick $tallystick,
        private readonly array $tools,
        private $decide,
    ) {
    }

    /** Works until the run has ended or waits for a decision of someone else. Returns its result. */
    public function work(string $runId): array
    {
        while (true) {
            $result = $this->tallystick->result($runId);
            $hasMoved = false;
            foreach ($result['deferredCalls'] ?? [] as $call) {
                $answer = ($this->tools[$call['name']])($call['input'], $call['toolCallId']);
                $this->tallystick->settle($runId, $call['toolCallId'], $answer);
                $hasMoved = true;
            }
            foreach ($result['pendingApprovals'] ?? [] as $call) {
                if (($this->decide)($call)) {
                    $this->tallystick->approve($runId, $call);
                    $hasMoved = true;
                }
            }
            if ($result['status'] === 'done' || !$hasMoved) {
                return $result;
            }
        }
    }
}
