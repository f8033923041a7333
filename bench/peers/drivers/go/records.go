// SPDX-License-Identifier: MIT

package main

import (
	"bufio"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

const errorsKept = 3

// Moments of CLOCK_MONOTONIC, which all processes of the machine share.
type record struct {
	asked, entered, leaving, released int64
}

// What one task has seen; it alone writes to it.
type taskLog struct {
	records []record
	refused int
	errors  []string
}

type outcome struct {
	Acquisitions int      `json:"acquisitions"`
	Refused      int      `json:"refused"`
	Errors       []string `json:"errors"`
}

func now() int64 {
	var t unix.Timespec
	unix.ClockGettime(unix.CLOCK_MONOTONIC, &t)
	return t.Nano()
}

func (log *taskLog) note(err error) {
	if len(log.errors) < errorsKept {
		log.errors = append(log.errors, err.Error())
	}
}

func summary(logs []taskLog) outcome {
	result := outcome{Errors: []string{}}
	for _, log := range logs {
		result.Acquisitions += len(log.records)
		result.Refused += log.refused
		result.Errors = append(result.Errors, log.errors...)
	}
	result.Errors = result.Errors[:min(len(result.Errors), errorsKept)]
	return result
}

func write(path string, logs []taskLog) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	buffer := bufio.NewWriter(file)
	for task, log := range logs {
		for _, r := range log.records {
			fmt.Fprintf(buffer, "%d %d %d %d %d\n", task, r.asked, r.entered, r.leaving, r.released)
		}
	}
	if err := buffer.Flush(); err != nil {
		return err
	}
	return file.Close()
}
