<?php

declare(strict_types=1);

namespace Tallystick;

/**
 * Does what the calls of a run ask for. It keeps nothing: what a run waits for is in the ledger, so any worker continues where another
 * died.
 */
final class Worker
{
    /**
     * @param array<string, callable(array<string, mixed>, string): string> $tools by name; each gets the input and the id of the call,
     *     under which a tool that changes something does its work once
     */
    public function __construct(private readonly Client $client, private readonly array $tools)
    {
    }

    /** Works until the run has ended, or waits for somebody else. */
    public function work(string $runId): Result
    {
        while (true) {
            $result = $this->client->result($runId);
            $mine = array_filter($result->deferredCalls, fn (DeferredCall $call): bool => isset($this->tools[$call->name]));
            if ($mine === []) {
                return $result;
            }
            foreach ($mine as $call) {
                $answer = ($this->tools[$call->name])($call->input, $call->toolCallId);
                try {
                    $this->client->settle($call->runId, $call->toolCallId, $answer);
                } catch (Problem $problem) {
                    // Another worker was first, or the run ended: the next result tells.
                    if ($problem->status !== 409) {
                        throw $problem;
                    }
                }
            }
        }
    }
}
