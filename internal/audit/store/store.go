// Package store keeps the records of audit logs where they can be asked for: an
// SQLite database that is read from the logs, can be thrown away, and is made anew
// from them. The evidence is the log.
package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"strings"
	"time"

	_ "modernc.org/sqlite" // the driver

	"github.com/e2bguard/e2bguard/internal/audit"
)

// schema is the database's; its version is in user_version.
const schema = `
CREATE TABLE IF NOT EXISTS records (
	chain TEXT NOT NULL, seq INTEGER NOT NULL, time INTEGER NOT NULL, kind TEXT NOT NULL,
	id TEXT, client TEXT, sandbox TEXT, operation TEXT,
	decision TEXT, would_block INTEGER, code TEXT, guard TEXT, rules TEXT, took INTEGER,
	ended TEXT, exit_code INTEGER, wall INTEGER,
	line TEXT NOT NULL,
	PRIMARY KEY (chain, seq)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS records_time ON records (time);
CREATE INDEX IF NOT EXISTS records_sandbox ON records (sandbox, time);
CREATE INDEX IF NOT EXISTS records_id ON records (id);
CREATE TABLE IF NOT EXISTS rules (rule TEXT NOT NULL, chain TEXT NOT NULL, seq INTEGER NOT NULL, PRIMARY KEY (rule, chain, seq)) WITHOUT ROWID;
PRAGMA user_version = 1;
`

// Store is a database of records. It is safe for concurrent use.
type Store struct {
	db *sql.DB
	// read is how far each file has been read, for the next Sync.
	read []position
}

// position is how far a file has been read.
type position struct {
	info  os.FileInfo
	size  int64
	chain string
}

// Open opens or makes a database; "" is one in memory.
func Open(path string) (*Store, error) {
	dsn := ":memory:"
	if path != "" {
		// Nobody but the owner may read what the log's mode keeps from others.
		f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			return nil, fmt.Errorf("opening the audit store: %w", err)
		}
		_ = f.Close()
		dsn = "file:" + (&url.URL{Path: path}).EscapedPath() + "?_pragma=journal_mode(WAL)&_pragma=synchronous(NORMAL)&_pragma=busy_timeout(5000)"
	}
	db, err := sql.Open("sqlite", dsn)
	if err != nil {
		return nil, fmt.Errorf("opening the audit store: %w", err)
	}
	db.SetMaxOpenConns(1) // one in memory is one connection's own
	if _, err := db.Exec(schema); err != nil {
		return nil, errors.Join(fmt.Errorf("opening the audit store: %w", err), db.Close())
	}
	return &Store{db: db}, nil
}

// Close closes the database.
func (s *Store) Close() error { return s.db.Close() }

// Sync reads what is new in the files of logs, which may have been rotated since.
// It must not be called twice at a time.
func (s *Store) Sync(ctx context.Context, paths ...string) error {
	var now []position
	for _, path := range paths {
		p, err := s.syncFile(ctx, path)
		if errors.Is(err, fs.ErrNotExist) {
			continue // removed by retention, or not there yet
		}
		if err != nil {
			return fmt.Errorf("reading %s into the audit store: %w", path, err)
		}
		now = append(now, p)
	}
	s.read = now
	return nil
}

func (s *Store) syncFile(ctx context.Context, path string) (position, error) {
	f, err := os.Open(path)
	if err != nil {
		return position{}, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return position{}, err
	}
	p := position{info: info}
	for _, old := range s.read {
		if os.SameFile(old.info, info) && old.size <= info.Size() {
			p.size, p.chain = old.size, old.chain
		}
	}
	if p.size == info.Size() {
		return p, nil
	}
	if _, err := f.Seek(p.size, io.SeekStart); err != nil {
		return p, err
	}
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return p, err
	}
	defer tx.Rollback() //nolint:errcheck // without effect behind a commit
	in, err := newInserter(ctx, tx)
	if err != nil {
		return p, err
	}
	var failed error
	_, n, err := audit.Read(f, func(r audit.Record, line []byte) bool {
		if r.Mark != nil {
			p.chain = r.Chain
		}
		failed = in.insert(ctx, p.chain, r, line)
		return failed == nil
	})
	if err = errors.Join(err, failed); err != nil {
		return p, err
	}
	p.size += n
	return p, tx.Commit()
}

type inserter struct{ record, rule *sql.Stmt }

func newInserter(ctx context.Context, tx *sql.Tx) (in inserter, err error) {
	if in.record, err = tx.PrepareContext(ctx, `INSERT OR IGNORE INTO records VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)`); err != nil {
		return in, err
	}
	in.rule, err = tx.PrepareContext(ctx, `INSERT OR IGNORE INTO rules VALUES (?,?,?)`)
	return in, err
}

func (in inserter) insert(ctx context.Context, chain string, r audit.Record, line []byte) error {
	var call audit.Call
	if r.Call != nil {
		call = *r.Call
	}
	var decision, code, guards, ended sql.NullString
	var wouldBlock, took, wall, exit sql.NullInt64
	var names, rules []string
	if d := r.Decision; d != nil {
		decision, code = text(d.Decision), text(d.Code)
		wouldBlock = sql.NullInt64{Valid: d.WouldBlock, Int64: 1}
		took = sql.NullInt64{Valid: true, Int64: d.Took}
		for _, s := range d.Subjects {
			if s.Verdict == nil {
				continue
			}
			names = add(names, s.Verdict.Guard)
			for _, v := range s.Verdict.Violations {
				if v.Rule != "" {
					rules = add(rules, v.Rule)
				}
			}
		}
		guards = text(strings.Join(names, ","))
	}
	if o := r.Outcome; o != nil {
		ended, wall = text(o.Ended), sql.NullInt64{Valid: true, Int64: o.Wall}
		if o.ExitCode != nil {
			exit = sql.NullInt64{Valid: true, Int64: int64(*o.ExitCode)}
		}
	}
	_, err := in.record.ExecContext(ctx, chain, int64(r.Seq), r.Time.UnixMicro(), string(r.Kind), text(r.ID), text(call.Client), text(call.Sandbox),
		text(call.Operation), decision, wouldBlock, code, guards, text(strings.Join(rules, ",")), took, ended, exit, wall, string(line))
	for _, rule := range rules {
		if err == nil {
			_, err = in.rule.ExecContext(ctx, rule, chain, int64(r.Seq))
		}
	}
	return err
}

func text(s string) sql.NullString { return sql.NullString{Valid: s != "", String: s} }

func add(all []string, s string) []string {
	for _, have := range all {
		if have == s {
			return all
		}
	}
	return append(all, s)
}

// Filter chooses calls; what is empty is not looked at.
type Filter struct {
	Sandbox, Client, Operation, ID string
	// Verdict is a decision ("block", "pass", …), or "would_block".
	Verdict string
	// Rule is the id of a rule that matched.
	Rule string
	// Since and Until bound the time.
	Since, Until time.Time
	// Limit bounds how many of the latest are returned; 0 for all.
	Limit int
}

func (f Filter) where() (string, []any) {
	clauses, args := []string{"d.kind IN ('decision', 'teardown')"}, []any{}
	is := func(clause, value string) {
		if value != "" {
			clauses, args = append(clauses, clause), append(args, value)
		}
	}
	is("d.sandbox = ?", f.Sandbox)
	is("d.client = ?", f.Client)
	is("d.operation = ?", f.Operation)
	is("d.id = ?", f.ID)
	if f.Verdict == "would_block" {
		clauses = append(clauses, "d.would_block = 1")
	} else {
		is("d.decision = ?", f.Verdict)
	}
	is("EXISTS (SELECT 1 FROM rules r WHERE r.rule = ? AND r.chain = d.chain AND r.seq = d.seq)", f.Rule)
	if !f.Since.IsZero() {
		clauses, args = append(clauses, "d.time >= ?"), append(args, f.Since.UnixMicro())
	}
	if !f.Until.IsZero() {
		clauses, args = append(clauses, "d.time < ?"), append(args, f.Until.UnixMicro())
	}
	return strings.Join(clauses, " AND "), args
}

// Row is a call: its decision, and its outcome if there is one.
type Row struct {
	Time                                             time.Time
	ID, Client, Sandbox, Operation                   string
	Decision, Code, Guard, Rules, Ended, DestroyedBy string
	WouldBlock                                       bool
	ExitCode                                         *int64
	// Lines are the records as they are in the log.
	Lines []string
}

// Query returns the calls that a filter chooses, oldest first.
func (s *Store) Query(ctx context.Context, f Filter) ([]Row, error) {
	where, args := f.where()
	limit := ""
	if f.Limit > 0 {
		limit = fmt.Sprintf(" LIMIT %d", f.Limit)
	}
	rows, err := s.db.QueryContext(ctx, `
		SELECT d.time, d.id, d.client, d.sandbox, d.operation, d.decision, d.code, d.guard, d.rules, d.would_block, d.line,
			coalesce(o.ended, d.ended), o.exit_code, o.line, json_extract(coalesce(o.line, d.line), '$.destroyed_by')
		FROM records d LEFT JOIN records o ON o.id = d.id AND o.kind = 'outcome' AND o.chain = d.chain
		WHERE `+where+` ORDER BY d.time DESC, d.seq DESC`+limit, args...)
	if err != nil {
		return nil, fmt.Errorf("asking the audit store: %w", err)
	}
	defer rows.Close()
	var all []Row
	for rows.Next() {
		var at int64
		var line string
		var cells [11]sql.NullString
		var would, exit sql.NullInt64
		if err := rows.Scan(&at, &cells[0], &cells[1], &cells[2], &cells[3], &cells[4], &cells[5], &cells[6], &cells[7], &would, &line,
			&cells[8], &exit, &cells[9], &cells[10]); err != nil {
			return nil, fmt.Errorf("asking the audit store: %w", err)
		}
		r := Row{
			Time: time.UnixMicro(at).UTC(), ID: cells[0].String, Client: cells[1].String, Sandbox: cells[2].String, Operation: cells[3].String,
			Decision: cells[4].String, Code: cells[5].String, Guard: cells[6].String, Rules: cells[7].String, Ended: cells[8].String,
			DestroyedBy: cells[10].String, WouldBlock: would.Int64 == 1, Lines: []string{line},
		}
		if exit.Valid {
			r.ExitCode = &exit.Int64
		}
		if cells[9].Valid {
			r.Lines = append(r.Lines, cells[9].String)
		}
		all = append(all, r)
	}
	for i, j := 0, len(all)-1; i < j; i, j = i+1, j-1 {
		all[i], all[j] = all[j], all[i]
	}
	return all, rows.Err()
}

// Group is what Stats counts of the calls that have something in common.
type Group struct {
	Key        string `json:"key"`
	Calls      int64  `json:"calls"`
	Blocked    int64  `json:"blocked"`
	WouldBlock int64  `json:"would_block"`
	Refused    int64  `json:"refused"`
	FailedOpen int64  `json:"fail_open"`
	// Unfinished have no outcome: they are running, or the process was killed.
	Unfinished int64 `json:"unfinished"`
	// Took is the mean time to the decision, in microseconds.
	Took int64 `json:"took_us"`
}

// groupings are what calls can be grouped by.
var groupings = map[string]string{
	"client": "coalesce(d.client, '-')", "sandbox": "coalesce(d.sandbox, '-')", "operation": "coalesce(d.operation, '-')",
	"verdict": "coalesce(d.decision, d.kind)", "rule": "r.rule",
	"hour": "strftime('%Y-%m-%dT%H:00Z', d.time / 1000000, 'unixepoch')", "day": "date(d.time / 1000000, 'unixepoch')",
	"all": "'all'",
}

// Groupings are the words Stats takes.
func Groupings() []string {
	return []string{"all", "client", "sandbox", "operation", "verdict", "rule", "hour", "day"}
}

// Stats counts the calls that a filter chooses, grouped by one of Groupings.
func (s *Store) Stats(ctx context.Context, f Filter, by string) ([]Group, error) {
	key, ok := groupings[by]
	if !ok {
		return nil, fmt.Errorf("unknown grouping %q: write one of %s", by, strings.Join(Groupings(), ", "))
	}
	where, args := f.where()
	join := ""
	if by == "rule" {
		join = " JOIN rules r ON r.chain = d.chain AND r.seq = d.seq"
	}
	rows, err := s.db.QueryContext(ctx, `
		SELECT `+key+`, count(*), sum(d.decision IS 'block'), sum(d.would_block IS 1), sum(d.decision IS 'refuse'), sum(d.decision IS 'fail_open'),
			sum(d.decision IN ('pass', 'allow', 'fail_open') AND NOT EXISTS (SELECT 1 FROM records o WHERE o.id = d.id AND o.kind = 'outcome')),
			cast(coalesce(avg(d.took), 0) AS INTEGER)
		FROM records d`+join+` WHERE `+where+` GROUP BY 1 ORDER BY 2 DESC, 1`, args...)
	if err != nil {
		return nil, fmt.Errorf("asking the audit store: %w", err)
	}
	defer rows.Close()
	var all []Group
	for rows.Next() {
		var g Group
		if err := rows.Scan(&g.Key, &g.Calls, &g.Blocked, &g.WouldBlock, &g.Refused, &g.FailedOpen, &g.Unfinished, &g.Took); err != nil {
			return nil, fmt.Errorf("asking the audit store: %w", err)
		}
		all = append(all, g)
	}
	return all, rows.Err()
}
