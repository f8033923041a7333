// SPDX-License-Identifier: MIT

// The driver of the lock libraries for Go: one process, a task is a goroutine. This file has the
// options and the modes; each library has a file of its own.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	exitUsage       = 2
	exitCannot      = 3 // what a peer cannot do
	pauseAfterError = 10 * time.Millisecond
	lastTurn        = 2 * time.Second // and a lease, after which everybody has had it
)

type settings struct {
	peer, lock, records, mode string
	urls                      []string
	tasks                     int
	ownLocks, wait            bool
	section, pause, lease     time.Duration // work under the lock, rest after a turn
}

// A session is what a process has with its server; a place is what a task has in it.
type session interface {
	place(lock string) (place, error)
	close()
}

// acquire says false when the lock is taken and the place was told not to wait.
type place interface {
	acquire(ctx context.Context) (bool, error)
	release() error // also if it was not held to the end
}

type peer struct {
	open func(settings) (session, error)
	// Why a mode or several servers are not possible; empty: they are.
	noHold, noSeveral string
}

var peers = map[string]peer{
	"redsync":     {open: openRedsync, noHold: "redsync: nothing renews a mutex by itself"},
	"redislock":   {open: openRedislock, noHold: "redislock: nothing renews a lock by itself", noSeveral: "redislock: a lock lives on one server"},
	"rueidislock": {open: openRueidislock, noSeveral: "rueidislock: several servers have to be a cluster"},
	"etcd":        {open: openEtcd},
}

func leave(status int, reason string) {
	fmt.Fprintln(os.Stderr, reason)
	os.Exit(status)
}

func parse() settings {
	var s settings
	var url string
	var ownLocks, wait int
	var sectionUs, pauseUs, leaseMs int64
	flag.StringVar(&s.peer, "peer", "", "")
	flag.StringVar(&url, "url", "", "")
	flag.StringVar(&s.lock, "lock", "", "")
	flag.StringVar(&s.records, "records", "", "")
	flag.StringVar(&s.mode, "mode", "pairs", "")
	flag.IntVar(&s.tasks, "tasks", 1, "")
	flag.IntVar(&ownLocks, "own-locks", 0, "")
	flag.IntVar(&wait, "wait", 1, "")
	flag.Int64Var(&sectionUs, "section-us", 0, "")
	flag.Int64Var(&pauseUs, "pause-us", 0, "")
	flag.Int64Var(&leaseMs, "lease-ms", 10000, "")
	flag.Parse()
	s.urls = strings.Split(url, ",")
	s.ownLocks, s.wait = ownLocks == 1, wait == 1
	s.section = time.Duration(sectionUs) * time.Microsecond
	s.pause = time.Duration(pauseUs) * time.Microsecond
	s.lease = time.Duration(leaseMs) * time.Millisecond
	if _, known := peers[s.peer]; !known || url == "" || s.lock == "" || s.tasks < 1 {
		leave(exitUsage, "bad arguments")
	}
	return s
}

func (p peer) objection(s settings) string {
	switch {
	case s.mode == "ids":
		return s.peer + ": has no ids"
	case s.mode == "hold" && p.noHold != "":
		return p.noHold
	case len(s.urls) > 1 && p.noSeveral != "":
		return p.noSeveral
	}
	return ""
}

type driver struct {
	settings
	session session
	input   *bufio.Scanner
	stopped atomic.Bool
	context context.Context // ends when somebody still waits though all should have had their turn
	tellers sync.Mutex
}

func (d *driver) say(format string, arguments ...any) {
	d.tellers.Lock()
	defer d.tellers.Unlock()
	fmt.Printf(format+"\n", arguments...)
}

func (d *driver) waitForGo() {
	d.say("ready")
	if !d.input.Scan() || d.input.Text() != "go" {
		os.Exit(0)
	}
}

// Whatever comes next ends the run: the word, or the end of the one who has started us.
func (d *driver) waitForStop() {
	d.input.Scan()
	d.stopped.Store(true)
}

func (d *driver) nameOf(task int) string {
	if d.ownLocks || d.mode == "hold" {
		return fmt.Sprintf("%s-%d", d.lock, task)
	}
	return d.lock
}

func (d *driver) places(count int) []place {
	places := make([]place, count)
	for task := range places {
		var err error
		if places[task], err = d.session.place(d.nameOf(task)); err != nil {
			leave(1, err.Error())
		}
	}
	return places
}

func mustAcquire(p place) {
	if got, err := p.acquire(context.Background()); err != nil {
		leave(1, err.Error())
	} else if !got {
		leave(1, "the lock is not free")
	}
}

func (d *driver) pairs() {
	places := d.places(d.tasks)
	logs := make([]taskLog, d.tasks)
	var group sync.WaitGroup
	var cancel context.CancelFunc
	d.context, cancel = context.WithCancel(context.Background())
	defer cancel()
	d.waitForGo()
	for task := range places {
		group.Add(1)
		go func() {
			defer group.Done()
			for !d.stopped.Load() {
				d.turn(places[task], &logs[task])
				time.Sleep(d.pause)
			}
		}()
	}
	d.waitForStop()
	time.AfterFunc(d.lease+lastTurn, cancel)
	group.Wait()
	if err := write(d.records, logs); err != nil {
		leave(1, err.Error())
	}
	outcome, _ := json.Marshal(summary(logs))
	d.say("%s", outcome)
}

func (d *driver) turn(p place, log *taskLog) {
	var r record
	r.asked = now()
	got, err := p.acquire(d.context)
	r.entered = now()
	if got {
		time.Sleep(d.section)
		r.leaving = now()
		err = p.release()
		r.released = now()
		log.records = append(log.records, r)
	} else if err == nil {
		log.refused++
	}
	if d.context.Err() != nil && err != nil {
		err = fmt.Errorf("still waiting %v after stop, and so cancelled", d.lease+lastTurn)
	}
	if err != nil {
		log.note(err)
		time.Sleep(pauseAfterError)
	}
}

func (d *driver) hold() {
	d.waitForGo()
	places := d.places(d.tasks)
	for _, p := range places {
		mustAcquire(p)
	}
	d.say("held")
	d.waitForStop()
	lost := 0
	for _, p := range places {
		if p.release() != nil {
			lost++
		}
	}
	d.say(`{"held": %d, "lost": %d}`, d.tasks, lost)
}

func (d *driver) die() {
	p := d.places(1)[0]
	d.waitForGo()
	mustAcquire(p)
	d.say("held")
	d.waitForStop()
	p.release()
}

func (d *driver) queue() {
	places := d.places(d.tasks)
	var group sync.WaitGroup
	d.waitForGo()
	for _, p := range places {
		group.Add(1)
		go func() {
			defer group.Done()
			mustAcquire(p)
			d.say("granted %d", now())
			p.release()
		}()
	}
	group.Wait()
}

func main() {
	s := parse()
	if reason := peers[s.peer].objection(s); reason != "" {
		leave(exitCannot, reason)
	}
	session, err := peers[s.peer].open(s)
	if err != nil {
		leave(1, err.Error())
	}
	d := driver{settings: s, session: session, input: bufio.NewScanner(os.Stdin)}
	modes := map[string]func(){"pairs": d.pairs, "hold": d.hold, "die": d.die, "queue": d.queue}
	run, known := modes[s.mode]
	if !known {
		leave(exitUsage, "no such mode: "+s.mode)
	}
	run()
	session.close()
}
